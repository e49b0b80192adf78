package linalg

import (
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// mulReal is q [M, N] times a real z [N, N].
func mulReal[T Scalar](q Mat[T], z []float64) Mat[T] {
	n := q.C
	p := New[T](q.R, n)
	for i := range q.R {
		row := p.Row(i)
		for k, v := range q.Row(i) {
			if v == 0 {
				continue
			}
			for j, x := range z[k*n : (k+1)*n] {
				row[j] += v * FromReal[T](x)
			}
		}
	}
	return p
}

// Eigh gives the eigenvalues of a Hermitian a [N, N], ascending, and, if vectors is set, eigenvectors in the columns of v. It
// reads the lower triangle and destroys a. ok is false if the iteration did not converge.
func Eigh[T Scalar](a Mat[T], vectors bool) (w []float64, v Mat[T], ok bool) {
	n := a.R
	if n == 0 {
		return nil, a, true
	}
	scale := a.scaleDown()
	for i := range n {
		a.Set(i, i, FromReal[T](realPart(a.At(i, i))))
		for j := range i {
			a.Set(j, i, Conj(a.At(i, j)))
		}
	}
	// Householder: a = Q*tridiagonal*Q^H
	tau, off := make([]T, n), make([]float64, n)
	vs := make([][]T, n)
	for k := range n - 1 {
		x := make([]T, n-k-1)
		for i := range x {
			x[i] = a.At(k+1+i, k)
		}
		tau[k] = reflector(x)
		off[k] = realPart(x[0])
		x[0] = 1
		vs[k] = x
		reflectLeft(a, x, Conj(tau[k]), k+1, k+1)
		reflectRight(a, x, tau[k], k+1, k+1)
	}
	w = make([]float64, n)
	for i := range w {
		w[i] = realPart(a.At(i, i))
	}
	work := make([]float64, max(1, 2*n-2))
	if !vectors {
		ok = gonum.Implementation{}.Dsterf(n, w, off[:max(n-1, 0)])
		scaleAll(w, scale)
		return w, v, ok
	}
	z := make([]float64, n*n)
	ok = gonum.Implementation{}.Dsteqr(lapack.EVTridiag, n, w, off[:max(n-1, 0)], z, n, work)
	q := Eye[T](n, n)
	for k := n - 2; k >= 0; k-- {
		reflectLeft(q, vs[k], tau[k], k+1, k+1)
	}
	scaleAll(w, scale)
	return w, mulReal(q, z), ok
}

func scaleAll(w []float64, f float64) {
	if f == 1 {
		return
	}
	for i := range w {
		w[i] *= f
	}
}
