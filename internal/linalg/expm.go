package linalg

import "math"

// pade13 are the coefficients of the [13/13] Padé approximant of exp (Higham 2005).
var pade13 = [...]float64{64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
	670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}

// Exp is the exponential of a square matrix, by scaling and squaring.
func Exp[T Scalar](a Mat[T]) Mat[T] {
	n := a.R
	squarings := 0
	a = a.Clone()
	if norm := a.Norm1(); norm > 5.371920351148152 && !math.IsInf(norm, 0) {
		_, squarings = math.Frexp(norm / 5.371920351148152)
		f := FromReal[T](math.Ldexp(1, -squarings))
		for i := range a.A {
			a.A[i] *= f
		}
	}
	a2 := Mul(a, a)
	a4 := Mul(a2, a2)
	a6 := Mul(a4, a2)
	sum := func(c6, c4, c2, c0 float64) Mat[T] {
		m := New[T](n, n)
		x, y, w, d := FromReal[T](c6), FromReal[T](c4), FromReal[T](c2), FromReal[T](c0)
		for i := range m.A {
			m.A[i] = x*a6.A[i] + y*a4.A[i] + w*a2.A[i]
		}
		for i := range n {
			m.A[i*n+i] += d
		}
		return m
	}
	c := pade13
	plus := func(x, y Mat[T]) Mat[T] {
		for i := range x.A {
			x.A[i] += y.A[i]
		}
		return x
	}
	u := Mul(a, plus(Mul(a6, sum(c[13], c[11], c[9], 0)), sum(c[7], c[5], c[3], c[1])))
	v := plus(Mul(a6, sum(c[12], c[10], c[8], 0)), sum(c[6], c[4], c[2], c[0]))
	den := New[T](n, n)
	for i := range den.A {
		den.A[i] = v.A[i] - u.A[i]
		v.A[i] += u.A[i]
	}
	piv := make([]int32, n)
	LU(den, piv)
	SolveLU(den, piv, v, false)
	for range squarings {
		v = Mul(v, v)
	}
	return v
}
