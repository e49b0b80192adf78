package linalg

import "math"

func sqrt(x float64) float64 { return math.Sqrt(x) }

// reflector makes a Householder reflector H = I - tau*v*v^H, v[0] = 1, with H^H*x = (beta, 0, ...), beta real. x[0] becomes
// beta, the rest of x becomes v[1:].
func reflector[T Scalar](x []T) (tau T) {
	if len(x) == 0 {
		return 0
	}
	norm := 0.0
	for _, v := range x[1:] {
		norm = math.Hypot(norm, Abs(v))
	}
	re, im := realPart(x[0]), imagPart(x[0])
	if norm == 0 && im == 0 {
		return 0
	}
	beta := -math.Copysign(math.Hypot(math.Hypot(re, im), norm), re)
	b := FromReal[T](beta)
	tau = (b - x[0]) / b
	inv := 1 / (x[0] - b)
	for i := range x[1:] {
		x[1+i] *= inv
	}
	x[0] = b
	return tau
}

// reflectLeft applies I - tau*v*v^H to rows [r, r+len(v)) and columns [c, C) of a.
func reflectLeft[T Scalar](a Mat[T], v []T, tau T, r, c int) {
	if tau == 0 || c >= a.C {
		return
	}
	w := make([]T, a.C-c)
	for i, x := range v {
		axpy(w, a.Row(r + i)[c:], Conj(x))
	}
	for i, x := range v {
		axpy(a.Row(r + i)[c:], w, -tau*x)
	}
}

// reflectRight applies I - tau*v*v^H from the right to rows [r, R) and columns [c, c+len(v)) of a.
func reflectRight[T Scalar](a Mat[T], v []T, tau T, r, c int) {
	if tau == 0 {
		return
	}
	conj := make([]T, len(v))
	for i, x := range v {
		conj[i] = Conj(x)
	}
	for i := r; i < a.R; i++ {
		row := a.Row(i)[c : c+len(v)]
		var s T
		for j, x := range row {
			s += x * v[j]
		}
		axpy(row, conj, -tau*s)
	}
}

// column copies column j of a from row r down, with a leading 1 in place of the first element: a reflector's vector.
func (m Mat[T]) column(r, j int) []T {
	v := make([]T, m.R-r)
	v[0] = 1
	for i := 1; i < len(v); i++ {
		v[i] = m.At(r+i, j)
	}
	return v
}

// QR factors a [M, N] in place: R on and above the diagonal, below it the vectors of min(M, N) reflectors H_0*H_1*... = Q
// whose factors are returned.
func QR[T Scalar](a Mat[T]) (tau []T) {
	tau = make([]T, min(a.R, a.C))
	for k := range tau {
		x := make([]T, a.R-k)
		for i := range x {
			x[i] = a.At(k+i, k)
		}
		tau[k] = reflector(x)
		for i := range x {
			a.Set(k+i, k, x[i])
		}
		x[0] = 1
		reflectLeft(a, x, Conj(tau[k]), k, k+1)
	}
	return tau
}

// Q multiplies out the reflectors that QR left in a, to the first cols columns of the unitary matrix.
func Q[T Scalar](a Mat[T], tau []T, cols int) Mat[T] {
	q := Eye[T](a.R, cols)
	for k := len(tau) - 1; k >= 0; k-- {
		reflectLeft(q, a.column(k, k), tau[k], k, min(k, cols))
	}
	return q
}

// MulQ overwrites c with Q*c, Q^H*c, c*Q or c*Q^H for the reflectors that QR left in a.
func MulQ[T Scalar](a Mat[T], tau []T, c Mat[T], left, adjoint bool) {
	for s := range tau {
		k := s
		if left != adjoint { // Q*c and c*Q^H begin with the last reflector
			k = len(tau) - 1 - s
		}
		t := tau[k]
		if adjoint {
			t = Conj(t)
		}
		v := a.column(k, k)
		if left {
			reflectLeft(c, v, t, k, 0)
		} else {
			reflectRight(c, v, t, 0, k)
		}
	}
}
