package aten

import "math"

// The orthogonal polynomials follow PyTorch in which formula serves which degree and argument, and compute in the operand's
// own precision, because the recurrences carry their rounding along.

func cosT[T float32 | float64](x T) T  { return T(math.Cos(float64(x))) }
func sinT[T float32 | float64](x T) T  { return T(math.Sin(float64(x))) }
func acosT[T float32 | float64](x T) T { return T(math.Acos(float64(x))) }

func absT[T float32 | float64](x T) T { return T(math.Abs(float64(x))) }

// checkDegree refuses degrees whose recurrence would not end: PyTorch computes for hours there.
func checkDegree(n int64) {
	const most = 1 << 24
	if n > most {
		Fail("a polynomial of degree %d is not supported", n)
	}
}

// signed is v, or -v for an odd degree.
func signed[T float32 | float64](n int64, v T) T {
	if n%2 != 0 {
		return -v
	}
	return v
}

// chebyshevRun is the recurrence p(k) = 2*x*p(k-1) - p(k-2) from p(0) = 1 and p(1) = q.
func chebyshevRun[T float32 | float64](x, q T, n int64) T {
	if n == 0 {
		return 1
	}
	p := T(1)
	for k := int64(2); k <= n && q == q; k++ {
		p, q = q, (x+x)*q-p
	}
	return q
}

func chebyshevT[T float32 | float64](x T, n int64) T {
	switch {
	case n < 0:
		return 0
	case x == 1:
		return 1
	case x == -1:
		return signed[T](n, 1)
	case n > 6 && absT(x) < 1:
		return cosT(T(n) * acosT(x))
	}
	return chebyshevRun(x, x, n)
}

func chebyshevU[T float32 | float64](x T, n int64) T {
	switch {
	case n < 0:
		return 0
	case x == 1:
		return T(n + 1)
	case x == -1:
		return signed(n, T(n+1))
	case n > 8 && absT(x) < 1:
		return chebyshevUTrig(x, n)
	}
	return chebyshevRun(x, x+x, n)
}

func chebyshevUTrig[T float32 | float64](x T, n int64) T {
	a := acosT(x)
	if s := sinT(a); s != 0 {
		return sinT(T(n+1)*a) / s
	}
	return T(n+1) * cosT(T(n+1)*a) / x
}

func chebyshevV[T float32 | float64](x T, n int64) T {
	switch {
	case n < 0:
		return 0
	case x == 1:
		return 1
	case x == -1:
		return signed(n, T(n+n+1))
	case n > 8 && absT(x) < 1:
		return chebyshevVTrig(x, n)
	}
	return chebyshevRun(x, x+x-1, n)
}

func chebyshevVTrig[T float32 | float64](x T, n int64) T {
	a := acosT(x)
	if sinT(a/2) != 1 {
		return cosT((T(n)+0.5)*a) / cosT(a/2)
	}
	return signed(n, T(n+n+1))
}

func chebyshevW[T float32 | float64](x T, n int64) T {
	switch {
	case n < 0:
		return 0
	case x == 1:
		return T(n + n + 1)
	case x == -1:
		return signed[T](n, 1)
	case n > 8 && absT(x) < 1:
		return chebyshevWTrig(x, n)
	}
	return chebyshevRun(x, x+x+1, n)
}

func chebyshevWTrig[T float32 | float64](x T, n int64) T {
	a := acosT(x)
	if cosT(a/2) != 1 {
		return sinT((T(n)+0.5)*a) / sinT(a/2)
	}
	if x > 0 {
		return T(n + n + 1)
	}
	return signed[T](n, 1)
}

// The shifted polynomials are those above at 2*x - 1.

func shiftedT[T float32 | float64](x T, n int64) T {
	y := x + x - 1
	switch {
	case n < 0:
		return 0
	case x == 1:
		return 1
	case x == 0:
		return signed[T](n, 1)
	case n > 6 && absT(y) < 1:
		return cosT(T(n) * acosT(y))
	}
	return chebyshevRun(y, y, n)
}

func shiftedU[T float32 | float64](x T, n int64) T {
	y := x + x - 1
	switch {
	case n < 0:
		return 0
	case x == 1:
		return T(n + 1)
	case x == 0:
		return signed(n, T(n+1))
	case n > 6 && absT(y) < 1:
		return chebyshevUTrig(y, n)
	}
	return chebyshevRun(y, y+y, n)
}

func shiftedV[T float32 | float64](x T, n int64) T {
	y := x + x - 1
	switch {
	case n < 0:
		return 0
	case x == 1:
		return 1
	case x == 0:
		return signed(n, T(n+n+1))
	case n > 6 && absT(y) < 1:
		return chebyshevVTrig(y, n)
	}
	return chebyshevRun(y, y+y-1, n)
}

func shiftedW[T float32 | float64](x T, n int64) T {
	y := x + x - 1
	switch {
	case n < 0:
		return 0
	case x == 1:
		return T(n + n + 1)
	case x == 0:
		return signed[T](n, 1)
	case n > 4 && absT(y) < 1:
		return chebyshevWTrig(y, n)
	}
	return chebyshevRun(y, y+y+1, n)
}

// hermiteLimit is the degree above which PyTorch answers NaN: 128 for float32, 512 for float64.
func hermiteLimit[T float32 | float64]() int64 {
	if T(1)+T(1e-10) == 1 {
		return 128
	}
	return 512
}

func hermiteH[T float32 | float64](x T, n int64) T {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return 1
	case n > hermiteLimit[T]():
		return T(math.NaN())
	}
	p, q := T(1), x+x
	for k := int64(2); k < n+n; k += 2 {
		p, q = q, (x+x)*q-T(k)*p
	}
	return q
}

func hermiteHe[T float32 | float64](x T, n int64) T {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return 1
	case n > hermiteLimit[T]():
		return T(math.NaN())
	}
	p, q := T(1), x
	for k := int64(1); k < n; k++ {
		p, q = q, x*q-T(k)*p
	}
	return q
}

func laguerre[T float32 | float64](x T, n int64) T {
	checkDegree(n)
	switch {
	case n < 0:
		return 0
	case x == 0, n == 0:
		return 1
	}
	p, q := T(1), 1-x
	for k := int64(1); k < n && q == q; k++ {
		p, q = q, ((T(k+k)+(1-x))*q-T(k)*p)/T(k+1)
	}
	return q
}

func legendre[T float32 | float64](x T, n int64) T {
	checkDegree(n)
	switch {
	case n < 0:
		return 0
	case x == 1, n == 0:
		return 1
	case x == -1:
		return signed[T](n, 1)
	}
	p, q := T(1), x
	for k := int64(1); k < n && q == q; k++ {
		p, q = q, (T(k+k+1)*x*q-T(k)*p)/T(k+1)
	}
	return q
}
