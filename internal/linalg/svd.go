package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack/gonum"
)

// SVD gives the singular values of a [M, N], descending, and, if vectors is set, U [M, K] and V^H [K, N] with K = min(M, N),
// or the square ones if full. It destroys a. ok is false if the iteration did not converge.
func SVD[T Scalar](a Mat[T], vectors, full bool) (u Mat[T], s []float64, vh Mat[T], ok bool) {
	scale := a.scaleDown()
	if a.R < a.C {
		v, s, uh, ok := svdTall(a.H(), vectors, full, true)
		scaleAll(s, scale)
		if !vectors {
			return u, s, vh, ok
		}
		return uh.H(), s, v.H(), ok
	}
	u, s, vh, ok = svdTall(a, vectors, full, false)
	scaleAll(s, scale)
	return u, s, vh, ok
}

// svdTall is [SVD] for M >= N. A much taller matrix is reduced to its R factor first. The steps and so the signs of the
// vectors are those of LAPACK's gesdd; wide asks for the steps that it takes for the conjugate transpose of a.
func svdTall[T Scalar](a Mat[T], vectors, full, wide bool) (u Mat[T], s []float64, vh Mat[T], ok bool) {
	m, n := a.R, a.C
	if n == 0 {
		return Eye[T](m, pickInt(full, m, 0)), nil, New[T](0, 0), true
	}
	if m < n*11/6 || m == n {
		return svdBidiagonal(a, vectors, full, wide)
	}
	tau := QR(a)
	r := New[T](n, n)
	for i := range n {
		copy(r.Row(i)[i:], a.Row(i)[i:])
	}
	if wide {
		r = r.H()
	}
	ur, s, vh, ok := svdBidiagonal(r, vectors, false, false)
	if !vectors {
		return u, s, vh, ok
	}
	if wide {
		ur, vh = vh.H(), ur.H()
	}
	u = Eye[T](m, pickInt(full, m, n))
	for i := range n {
		copy(u.Row(i)[:n], ur.Row(i))
	}
	MulQ(a, tau, u, true, false)
	return u, s, vh, ok
}

func pickInt(c bool, a, b int) int {
	if c {
		return a
	}
	return b
}

// svdBidiagonal is [SVD] for M >= N by way of a bidiagonal matrix, upper for a itself and lower for its conjugate transpose.
func svdBidiagonal[T Scalar](a Mat[T], vectors, full, wide bool) (u Mat[T], s []float64, vh Mat[T], ok bool) {
	m, n := a.R, a.C
	d, e := make([]float64, n), make([]float64, n)
	tauQ, tauP := make([]T, n), make([]T, n)
	rights := make([][]T, n)
	for k := range n {
		x := make([]T, m-k)
		for i := range x {
			x[i] = a.At(k+i, k)
		}
		tauQ[k] = reflector(x)
		d[k] = realPart(x[0])
		x[0] = 1
		reflectLeft(a, x, Conj(tauQ[k]), k, k+1)
		for i := 1; i < len(x); i++ {
			a.Set(k+i, k, x[i])
		}
		if k == n-1 {
			break
		}
		y := make([]T, n-k-1)
		for j := range y {
			y[j] = Conj(a.At(k, k+1+j))
		}
		tauP[k] = reflector(y)
		e[k] = realPart(y[0])
		y[0] = 1
		rights[k] = y
		reflectRight(a, y, tauP[k], k+1, k+1)
	}
	work := make([]float64, 4*n)
	if !vectors {
		ok = gonum.Implementation{}.Dbdsqr(blas.Upper, n, 0, 0, 0, d, e[:max(n-1, 0)], nil, 1, nil, 1, nil, 1, work)
		return u, d, vh, ok
	}
	qz, pz := Eye[float64](n, n), Eye[float64](n, n)
	uplo := blas.Upper
	if wide {
		uplo = blas.Lower
	}
	if n == 1 && d[0] < 0 { // here LAPACK's divide-and-conquer turns the left vector, its iteration the right one
		d[0], qz.A[0] = -d[0], -1
	}
	ok = gonum.Implementation{}.Dbdsqr(uplo, n, n, n, 0, d, e[:max(n-1, 0)], pz.A, n, qz.A, n, nil, 1, work)
	if wide {
		pz, qz = qz.H(), pz.H()
	}
	u = Eye[T](m, pickInt(full, m, n))
	for i := range n {
		for j := range n {
			u.Set(i, j, FromReal[T](qz.At(i, j)))
		}
	}
	MulQ(a, tauQ, u, true, false)
	// V^H = P^T*G_last^H*...*G_0^H
	vh = New[T](n, n)
	for i, v := range pz.A {
		vh.A[i] = FromReal[T](v)
	}
	for k := n - 2; k >= 0; k-- {
		reflectRight(vh, rights[k], Conj(tauP[k]), 0, k+1)
	}
	return u, d, vh, ok
}
