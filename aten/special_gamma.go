package aten

import "math"

// lgamma is log|Gamma(x)|.
func lgamma(x float64) float64 {
	if math.IsInf(x, 0) {
		return math.Inf(1)
	}
	v, _ := math.Lgamma(x)
	return v
}

// digamma is the logarithmic derivative of Gamma: reflection for negative x, recurrence up to 10, then the asymptotic series.
func digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case x < 0 && x == math.Floor(x):
		return math.NaN()
	case x < 0:
		_, frac := math.Modf(x)
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*frac)
	case math.IsInf(x, 1):
		return x
	}
	s := 0.0
	for ; x < 10; x++ {
		s -= 1 / x
	}
	z := 1 / (x * x)
	tail := z * (1./12 - z*(1./120-z*(1./252-z*(1./240-z*(1./132-z*(691./32760-z/12))))))
	return s + math.Log(x) - 0.5/x - tail
}

// trigamma is the second logarithmic derivative of Gamma, in the operand's own precision, which decides what its poles give.
func trigamma[T float32 | float64](x T) T {
	sign, s := T(1), T(0)
	if x < 0.5 {
		sign = -1
		sin := sinT(T(math.Pi) * x)
		s -= T(math.Pi) * T(math.Pi) / (sin * sin)
		x = 1 - x
	}
	for range 6 {
		s += 1 / (x * x)
		x++
	}
	z := 1 / (x * x)
	return sign * (s + (1+1/(2*x)+z*(T(1./6)-z*(T(1./30)-z*T(1./42))))/x)
}

// polygamma of order n >= 2, by the Hurwitz zeta function.
func polygamma[T float32 | float64](n int64, x T) T {
	v := T(math.Exp(lgamma(float64(n)+1))) * T(hurwitz(float64(n)+1, float64(x)))
	if n%2 == 0 {
		return -v
	}
	return v
}

// zetaTail holds (2k)!/B(2k), the divisors of the Euler-Maclaurin series.
var zetaTail = [...]float64{12, -720, 30240, -1209600, 47900160, -1892437580.3183792, 74724249600, -2950130727918.164,
	116467828143500.67, -4597978722407473, 181521054019435460, -7166165256175667000}

// hurwitz is the Hurwitz zeta function, the sum of 1/(k+q)^x over k >= 0: nine terms at least, then Euler-Maclaurin.
func hurwitz(x, q float64) float64 {
	const eps = 1.0 / (1 << 53)
	switch {
	case x == 1:
		return math.Inf(1)
	case x < 1:
		return math.NaN()
	case q <= 0 && q == math.Floor(q):
		return math.Inf(1)
	case q <= 0 && x != math.Floor(x):
		return math.NaN()
	}
	s := math.Pow(q, -x)
	a, b := q, 0.0
	for i := 0; i < 9 || a <= 9; i++ {
		a++
		b = math.Pow(a, -x)
		s += b
		if -eps*s < b && b < eps*s {
			return s
		}
		if i > 9 && a+1 == a { // too large a negative q: the sum cannot reach its tail
			return math.NaN()
		}
	}
	w := a
	s += b * w / (x - 1)
	s -= b / 2
	f, k := 1.0, 0.0
	for _, d := range zetaTail {
		f *= x + k
		b /= w
		t := f * b / d
		s += t
		if math.Abs(t/s) < eps {
			return s
		}
		k++
		f *= x + k
		b /= w
		k++
	}
	return s
}

// gammaP is the regularized lower incomplete gamma function.
func gammaP(a, x float64) float64 {
	switch {
	case x < 0 || a < 0:
		return math.NaN()
	case a == 0:
		return pick(x > 0, 1, math.NaN())
	case x == 0:
		return 0
	case math.IsInf(a, 0):
		return pick(math.IsInf(x, 0), math.NaN(), 0)
	case math.IsInf(x, 0):
		return 1
	case a != a || x != x:
		return math.NaN()
	}
	p, _ := gammaParts(a, x)
	return p
}

// gammaQ is the regularized upper incomplete gamma function.
func gammaQ(a, x float64) float64 {
	switch {
	case x < 0 || a < 0:
		return math.NaN()
	case a == 0:
		return pick(x > 0, 0, math.NaN())
	case x == 0:
		return 1
	case math.IsInf(a, 0):
		return pick(math.IsInf(x, 0), math.NaN(), 1)
	case math.IsInf(x, 0):
		return 0
	case a != a || x != x:
		return math.NaN()
	}
	_, q := gammaParts(a, x)
	return q
}

// gammaParts computes both incomplete gamma functions: the smaller one directly, the other as its complement. For a beyond
// 1e5 near x the leading terms of the uniform expansion serve, since series would need too many terms.
func gammaParts(a, x float64) (p, q float64) {
	if a > 1e5 && math.Abs(x-a) < 0.3*a {
		q = gammaUniform(a, x)
		return 1 - q, q
	}
	f := gammaFactor(a, x)
	if x <= 1.1 || x < a {
		p = f * gammaSeries(a, x) / a
		if x < a || p < 0.5 {
			return p, gammaSmallQ(a, x, p)
		}
		return p, 1 - p
	}
	q = f * gammaFraction(a, x)
	return 1 - q, q
}

// gammaSmallQ is 1-p, without cancellation where a is small.
func gammaSmallQ(a, x, p float64) float64 {
	if a > 0.5 || x > 1.1 {
		return 1 - p
	}
	// Q = 1 - x^a/Gamma(a+1) * (1 + a*sum((-x)^n/(n!(a+n)))).
	s, t := 0.0, 1.0
	for n := 1.0; n < 200; n++ {
		t *= -x / n
		s += t / (a + n)
		if math.Abs(t) < 1e-17*math.Abs(s) {
			break
		}
	}
	u := math.Expm1(a*math.Log(x) - lgamma(1+a))
	return -u - (u+1)*a*s
}

// gammaFactor is x^a * e^-x / Gamma(a).
func gammaFactor(a, x float64) float64 {
	if a < 10 {
		return math.Exp(a*math.Log(x)-x-lgamma(a+1)) * a
	}
	mu := (x - a) / a
	return math.Sqrt(a/(2*math.Pi)) * math.Exp(a*log1pMinus(mu)-stirling(a))
}

// log1pMinus is log(1+m) - m.
func log1pMinus(m float64) float64 {
	if math.Abs(m) > 0.3 {
		return math.Log1p(m) - m
	}
	s, t := 0.0, -m
	for n := 2.0; n < 200; n++ {
		t *= -m
		s -= t / n
		if math.Abs(t) < 1e-18*math.Abs(s) {
			break
		}
	}
	return s
}

// stirling is the correction in log Gamma(a) = (a-1/2)*log(a) - a + log(2*pi)/2 + stirling(a), for a >= 10.
func stirling(a float64) float64 {
	z := 1 / (a * a)
	return (1./12 - z*(1./360-z*(1./1260-z*(1./1680-z*(1./1188-z*691./360360))))) / a
}

// gammaSeries is the sum of x^n / ((a+1)...(a+n)).
func gammaSeries(a, x float64) float64 {
	s, t := 1.0, 1.0
	for n := 1.0; n < 20000; n++ {
		t *= x / (a + n)
		s += t
		if t < 1e-17*s {
			break
		}
	}
	return s
}

// gammaFraction is Legendre's continued fraction for e^x * x^-a * Gamma(a, x), evaluated by Lentz's method.
func gammaFraction(a, x float64) float64 {
	const tiny = 1e-300
	b := x + 1 - a
	c := 1 / tiny
	if b == 0 {
		b = tiny
	}
	d := 1 / b
	h := d
	for n := 1.0; n < 20000; n++ {
		an := -n * (n - a)
		b += 2
		d = an*d + b
		if d == 0 {
			d = tiny
		}
		c = b + an/c
		if c == 0 {
			c = tiny
		}
		d = 1 / d
		h *= d * c
		if math.Abs(d*c-1) < 1e-16 {
			break
		}
	}
	return h
}

// gammaUniform is Q(a, x) by the uniform asymptotic expansion in its first correction.
func gammaUniform(a, x float64) float64 {
	mu := (x - a) / a
	half := -log1pMinus(mu)
	eta := math.Copysign(math.Sqrt(2*half), mu)
	c := -1. / 3
	if math.Abs(eta) > 1e-4 {
		c = 1/mu - 1/eta
	} else {
		c += eta / 12
	}
	return 0.5*math.Erfc(eta*math.Sqrt(a/2)) + math.Exp(-a*half)/math.Sqrt(2*math.Pi*a)*c
}
