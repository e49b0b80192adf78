package aten

import "math"

// besselIe is exp(-x) * I(nu, x) for nu 0 or 1 and x >= 0: the power series, or for large x the asymptotic one.
func besselIe(nu, x float64) float64 {
	if x > 25 {
		if math.IsInf(x, 1) {
			return 0
		}
		return hankelSum(nu, -x) / math.Sqrt(2*math.Pi*x)
	}
	z := x * x / 4
	s, t := 1.0, 1.0
	for k := 1.0; k < 500; k++ {
		t *= z / (k * (k + nu))
		s += t
		if t < 1e-17*s {
			break
		}
	}
	if nu == 1 {
		s *= x / 2
	}
	return s * math.Exp(-x)
}

// hankelSum is the asymptotic series in 1/x that the modified Bessel functions share; a negative x alternates its signs.
func hankelSum(nu, x float64) float64 {
	s, t := 1.0, 1.0
	mu := 4 * nu * nu
	for k := 1.0; k < 60; k++ {
		odd := 2*k - 1
		next := t * (mu - odd*odd) / (k * 8 * x)
		if math.Abs(next) > math.Abs(t) {
			break
		}
		t = next
		s += t
		if math.Abs(t) < 1e-17*math.Abs(s) {
			break
		}
	}
	return s
}

// besselI1e is exp(-|x|) * I(1, x).
func besselI1e(x float64) float64 {
	v := besselIe(1, math.Abs(x))
	if x < 0 {
		return -v
	}
	return v
}

// besselKe is exp(x) * K(nu, x).
func besselKe(nu, x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(1)
	case x != x || x < 0:
		return math.NaN()
	case math.IsInf(x, 1):
		return 0
	case x > 25:
		return hankelSum(nu, x) * math.Sqrt(math.Pi/(2*x))
	}
	// The integral of exp(-x*(cosh(t)-1)) * cosh(nu*t) over t >= 0: the trapezoidal rule converges geometrically.
	h := math.Min(0.25, math.Sqrt(0.5/x))
	s := 0.5
	for n := 1.0; n < 1e5; n++ {
		t := n * h
		half := math.Sinh(t / 2)
		v := math.Exp(-2*x*half*half) * math.Cosh(nu*t)
		s += v
		if v < 1e-18*s {
			break
		}
	}
	return s * h
}

func besselK(nu, x float64) float64 {
	v := besselKe(nu, x)
	if v == 0 || math.IsInf(v, 1) {
		return v
	}
	return math.Exp(-x) * v
}

func sphericalJ0(x float64) float64 {
	switch {
	case math.IsInf(x, 0):
		return 0
	case math.Abs(x) < 0.5:
		z := x * x
		return 1 - z/6*(1-z/20*(1-z/42*(1-z/72*(1-z/110*(1-z/156)))))
	}
	return math.Sin(x) / x
}

// airyAi is the Airy function of the first kind; PyTorch's is NaN at infinity.
func airyAi(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 0):
		return math.NaN()
	case x > 103.892:
		return 0
	case x > 1:
		z := 2 * x * math.Sqrt(x) / 3
		return math.Sqrt(x/3) / math.Pi * besselKe(1./3, z) * math.Exp(-z)
	case x < -8:
		return airyOscillating(-x)
	}
	return airySeries(x)
}

// airyOscillating is Ai(-x) for large x, by its asymptotic series.
func airyOscillating(x float64) float64 {
	z := 2 * x * math.Sqrt(x) / 3
	u, p, q := 1.0, 1.0, 0.0
	for k := 1; k < 40; k++ {
		f := float64(k)
		next := u * (6*f - 5) * (6*f - 3) * (6*f - 1) / (216 * f * (2*f - 1)) / z
		if next > u || next < 1e-18 {
			break
		}
		u = next
		switch k % 4 {
		case 1:
			q += u
		case 2:
			p -= u
		case 3:
			q -= u
		case 0:
			p += u
		}
	}
	t := z - math.Pi/4
	return (math.Cos(t)*p + math.Sin(t)*q) / (math.Sqrt(math.Pi) * math.Sqrt(math.Sqrt(x)))
}

// airySeries is the power series, summed in double-double because its parts cancel for negative x.
func airySeries(x float64) float64 {
	ai0, dai0 := twofold{0.3550280538878172, 2.05233632436212e-17}, twofold{-0.2588194037928068, 2.522243111610832e-17}
	cube := mulFold(mulFold(twofold{x, 0}, twofold{x, 0}), twofold{x, 0})
	run := func(t twofold, offset float64) twofold {
		s := t
		for k := 1.0; k < 200; k++ {
			t = divFold(mulFold(t, cube), (3*k-1+offset)*(3*k+offset))
			s = addFold(s, t)
			if math.Abs(t.hi) < 1e-33*math.Abs(s.hi) || t.hi == 0 {
				break
			}
		}
		return s
	}
	s := addFold(run(ai0, 0), run(mulFold(dai0, twofold{x, 0}), 1))
	return s.hi + s.lo
}

// twofold is an unevaluated sum of two floats, of about 106 bits.
type twofold struct{ hi, lo float64 }

func addFold(a, b twofold) twofold {
	s := a.hi + b.hi
	v := s - a.hi
	e := (a.hi - (s - v)) + (b.hi - v) + a.lo + b.lo
	h := s + e
	return twofold{h, e - (h - s)}
}

func mulFold(a, b twofold) twofold {
	p := a.hi * b.hi
	e := math.FMA(a.hi, b.hi, -p) + a.hi*b.lo + a.lo*b.hi
	h := p + e
	return twofold{h, e - (h - p)}
}

func divFold(a twofold, b float64) twofold {
	q := a.hi / b
	r := math.FMA(-q, b, a.hi) + a.lo
	e := r / b
	h := q + e
	return twofold{h, e - (h - q)}
}

// erfcx is exp(x*x) * erfc(x).
func erfcx(x float64) float64 {
	switch {
	case x < 0:
		return 2*expSquare(x) - erfcx(-x)
	case x < 10:
		return expSquare(x) * math.Erfc(x)
	}
	s, t := 1.0, 1.0
	for k := 1.0; k < 60; k++ {
		t *= -(2*k - 1) / (2 * x * x)
		s += t
		if math.Abs(t) < 1e-17 {
			break
		}
	}
	return s / (x * math.Sqrt(math.Pi))
}

// expSquare is exp(x*x) with the rounding of the square made good.
func expSquare(x float64) float64 {
	hi := x * x
	if math.IsInf(hi, 1) {
		return hi
	}
	return math.Exp(hi) * (1 + math.FMA(x, x, -hi))
}

// ndtri is the inverse of the normal distribution function: a rational start, then Halley's iteration.
func ndtri(p float64) float64 {
	switch {
	case p == 0:
		return math.Inf(-1)
	case p == 1:
		return math.Inf(1)
	case !(p > 0 && p < 1):
		return math.NaN()
	case p == 0.5:
		return 0
	}
	y := math.Min(p, 1-p)
	t := math.Sqrt(-2 * math.Log(y))
	x := (2.515517+t*(0.802853+t*0.010328))/(1+t*(1.432788+t*(0.189269+t*0.001308))) - t
	for range 4 {
		u := 0.5 * erfcx(-x/math.Sqrt2) * math.Sqrt(2*math.Pi) // the distribution over the density
		if -x < 5 {
			u = 0.5 * math.Erfc(-x/math.Sqrt2) * math.Sqrt(2*math.Pi) * math.Exp(x*x/2)
		}
		e := u - y*math.Sqrt(2*math.Pi)*math.Exp(x*x/2)
		x -= e / (1 + x*e/2)
	}
	if p > 0.5 {
		return -x
	}
	return x
}

// logNdtr is the logarithm of the normal distribution function.
func logNdtr(x float64) float64 {
	t := x * (math.Sqrt2 / 2)
	if x < -1 {
		return math.Log(erfcx(-t)/2) - t*t
	}
	return math.Log1p(-math.Erfc(t) / 2)
}
