// Package linalg factors and solves small dense matrices over float64 and complex128, with LAPACK's conventions (signs of
// Householder vectors, order of pivots and eigenvalues), so that results agree with libraries built on it.
//
// Matrices are row-major. Functions destroy their arguments where they say so. None of them checks sizes: callers have.
package linalg

import (
	"math"
	"math/cmplx"
)

// Scalar is a field that matrices are over.
type Scalar interface{ float64 | complex128 }

// eps is the unit roundoff times two, as LAPACK's dlamch('P').
const eps = 0x1p-52

// Mat is a row-major [R, C] matrix.
type Mat[T Scalar] struct {
	R, C int
	A    []T
}

// New makes a matrix of zeros.
func New[T Scalar](r, c int) Mat[T] { return Mat[T]{r, c, make([]T, r*c)} }

// Eye makes an [r, c] matrix with ones on its diagonal.
func Eye[T Scalar](r, c int) Mat[T] {
	m := New[T](r, c)
	for i := range min(r, c) {
		m.A[i*c+i] = 1
	}
	return m
}

// Row is row i.
func (m Mat[T]) Row(i int) []T { return m.A[i*m.C : (i+1)*m.C] }

// At is element (i, j).
func (m Mat[T]) At(i, j int) T { return m.A[i*m.C+j] }

// Set writes element (i, j).
func (m Mat[T]) Set(i, j int, v T) { m.A[i*m.C+j] = v }

// Clone copies the matrix.
func (m Mat[T]) Clone() Mat[T] { return Mat[T]{m.R, m.C, append([]T(nil), m.A...)} }

// H is the conjugate transpose.
func (m Mat[T]) H() Mat[T] {
	h := New[T](m.C, m.R)
	for i := range m.R {
		for j, v := range m.Row(i) {
			h.A[j*m.R+i] = Conj(v)
		}
	}
	return h
}

// swapRows exchanges two rows.
func (m Mat[T]) swapRows(i, j int) {
	if i == j {
		return
	}
	a, b := m.Row(i), m.Row(j)
	for c := range a {
		a[c], b[c] = b[c], a[c]
	}
}

// Mul is the product of a [M, K] and b [K, N].
func Mul[T Scalar](a, b Mat[T]) Mat[T] {
	p := New[T](a.R, b.C)
	for i := range a.R {
		row := p.Row(i)
		for k, v := range a.Row(i) {
			if v != 0 {
				axpy(row, b.Row(k), v)
			}
		}
	}
	return p
}

// axpy is y += a*x.
func axpy[T Scalar](y, x []T, a T) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}

// Conj is the complex conjugate.
func Conj[T Scalar](x T) T {
	if z, ok := any(&x).(*complex128); ok {
		*z = cmplx.Conj(*z)
	}
	return x
}

// FromReal makes a Scalar of a real number.
func FromReal[T Scalar](f float64) (x T) {
	switch p := any(&x).(type) {
	case *float64:
		*p = f
	case *complex128:
		*p = complex(f, 0)
	}
	return x
}

func realPart[T Scalar](x T) float64 {
	if p, ok := any(&x).(*float64); ok {
		return *p
	}
	return real(*any(&x).(*complex128))
}

func imagPart[T Scalar](x T) float64 {
	if p, ok := any(&x).(*complex128); ok {
		return imag(*p)
	}
	return 0
}

// Abs is the modulus.
func Abs[T Scalar](x T) float64 {
	if p, ok := any(&x).(*float64); ok {
		return math.Abs(*p)
	}
	return cmplx.Abs(*any(&x).(*complex128))
}

// abs1 is the cheap modulus by which LAPACK chooses pivots: |Re| + |Im|.
func abs1[T Scalar](x T) float64 {
	if p, ok := any(&x).(*float64); ok {
		return math.Abs(*p)
	}
	z := *any(&x).(*complex128)
	return math.Abs(real(z)) + math.Abs(imag(z))
}

// Finite reports that no element is NaN or infinite.
func Finite[T Scalar](a []T) bool {
	for _, v := range a {
		if s := abs1(v); math.IsNaN(s) || math.IsInf(s, 0) {
			return false
		}
	}
	return true
}

// Norm1 is the largest column sum of absolute values.
func (m Mat[T]) Norm1() float64 {
	best := 0.0
	for j := range m.C {
		s := 0.0
		for i := range m.R {
			s += Abs(m.At(i, j))
		}
		best = math.Max(best, s)
	}
	return best
}

// scaleDown divides a by a power of two if its elements are so large or small that squares would leave the range of float64,
// and returns the factor that the results have to be multiplied by (1 if nothing was done).
func (m Mat[T]) scaleDown() float64 {
	big := 0.0
	for _, v := range m.A {
		big = math.Max(big, abs1(v))
	}
	if big == 0 || big > 1e-140 && big < 1e140 {
		return 1
	}
	_, e := math.Frexp(big)
	f := math.Ldexp(1, -e)
	for i := range m.A {
		m.A[i] *= FromReal[T](f)
	}
	return math.Ldexp(1, e)
}
