package linalg

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
)

// EigReal gives the eigenvalues of a real a [N, N] and, if vectors is set, eigenvectors of norm 1 in the columns of v. It
// destroys a. ok is false if the iteration did not converge.
func EigReal(a Mat[float64], vectors bool) (w []complex128, v Mat[complex128], ok bool) {
	n := a.R
	if n == 0 {
		return nil, New[complex128](0, 0), true
	}
	wr, wi := make([]float64, n), make([]float64, n)
	job, vr := lapack.RightEVNone, Mat[float64]{C: 1}
	if vectors {
		job, vr = lapack.RightEVCompute, New[float64](n, n)
	}
	var size [1]float64
	impl := gonum.Implementation{}
	impl.Dgeev(lapack.LeftEVNone, job, n, a.A, n, wr, wi, nil, 1, vr.A, vr.C, size[:], -1)
	work := make([]float64, int(size[0]))
	ok = impl.Dgeev(lapack.LeftEVNone, job, n, a.A, n, wr, wi, nil, 1, vr.A, vr.C, work, len(work)) == 0
	w = make([]complex128, n)
	for i := range w {
		w[i] = complex(wr[i], wi[i])
	}
	if !vectors {
		return w, v, ok
	}
	v = New[complex128](n, n)
	for j := 0; j < n; j++ {
		if wi[j] == 0 {
			for i := range n {
				v.Set(i, j, complex(vr.At(i, j), 0))
			}
			continue
		}
		for i := range n { // a pair of conjugates shares two columns
			z := complex(vr.At(i, j), vr.At(i, j+1))
			v.Set(i, j, z)
			v.Set(i, j+1, cmplx.Conj(z))
		}
		j++
	}
	return w, v, ok
}

// EigComplex is [EigReal] for a complex matrix: reduction to Hessenberg form, the QR iteration with single shifts, and back
// substitution. The largest component of each vector is real.
func EigComplex(a Mat[complex128], vectors bool) (w []complex128, v Mat[complex128], ok bool) {
	n := a.R
	z := Eye[complex128](n, n)
	hessenberg(a, z)
	if !schur(a, z) {
		return nil, v, false
	}
	w = make([]complex128, n)
	for i := range w {
		w[i] = a.At(i, i)
	}
	if vectors {
		v = schurVectors(a, z)
	}
	return w, v, true
}

// hessenberg makes a upper Hessenberg by a similarity that it applies to z, too.
func hessenberg(a, z Mat[complex128]) {
	n := a.R
	for k := 0; k < n-2; k++ {
		x := make([]complex128, n-k-1)
		for i := range x {
			x[i] = a.At(k+1+i, k)
		}
		tau := reflector(x)
		beta := x[0]
		x[0] = 1
		reflectLeft(a, x, cmplx.Conj(tau), k+1, k+1)
		reflectRight(a, x, tau, 0, k+1)
		reflectRight(z, x, tau, 0, k+1)
		a.Set(k+1, k, beta)
		for i := k + 2; i < n; i++ {
			a.Set(i, k, 0)
		}
	}
}

// schur makes an upper Hessenberg h triangular by unitary similarities that it applies to z, too.
func schur(h, z Mat[complex128]) bool {
	hi := h.R - 1
	for iter := 0; hi > 0; iter++ {
		if iter > 30*max(10, h.R) {
			return false
		}
		l := hi
		for ; l > 0; l-- {
			s := abs1(h.At(l-1, l-1)) + abs1(h.At(l, l))
			if s == 0 {
				s = 1
			}
			if abs1(h.At(l, l-1)) < eps*s {
				h.Set(l, l-1, 0)
				break
			}
		}
		if l == hi {
			hi, iter = hi-1, -1
			continue
		}
		shift := wilkinson(h, hi)
		if iter == 10 || iter == 20 {
			shift = h.At(hi, hi) + complex(0.75*abs1(h.At(hi, hi-1)), 0)
		}
		sweep(h, z, l, hi, shift)
	}
	return true
}

// wilkinson is the eigenvalue of the block of order 2 that ends at hi which lies nearer to its last element.
func wilkinson(h Mat[complex128], hi int) complex128 {
	t := h.At(hi, hi)
	u := cmplx.Sqrt(h.At(hi-1, hi)) * cmplx.Sqrt(h.At(hi, hi-1))
	if u == 0 {
		return t
	}
	x := (h.At(hi-1, hi-1) - t) / 2
	y := cmplx.Sqrt(x*x + u*u)
	if real(x)*real(y)+imag(x)*imag(y) < 0 {
		y = -y
	}
	return t - u*(u/(x+y))
}

// sweep is one QR step on rows and columns [l, hi] with the given shift, by rotations that chase the bulge.
func sweep(h, z Mat[complex128], l, hi int, shift complex128) {
	n := h.R
	x, y := h.At(l, l)-shift, h.At(l+1, l)
	for k := l; k < hi; k++ {
		if k > l {
			x, y = h.At(k, k-1), h.At(k+1, k-1)
		}
		r := math.Hypot(cmplx.Abs(x), cmplx.Abs(y))
		if r == 0 {
			continue
		}
		c, s := x/complex(r, 0), y/complex(r, 0)
		cc, sc := cmplx.Conj(c), cmplx.Conj(s)
		p, q := h.Row(k), h.Row(k+1)
		for j := max(k-1, l); j < n; j++ {
			p[j], q[j] = cc*p[j]+sc*q[j], c*q[j]-s*p[j]
		}
		rotate := func(m Mat[complex128], rows int) {
			for i := range rows {
				row := m.Row(i)
				row[k], row[k+1] = row[k]*c+row[k+1]*s, row[k+1]*cc-row[k]*sc
			}
		}
		rotate(h, min(k+2, hi)+1)
		rotate(z, n)
		if k > l {
			h.Set(k+1, k-1, 0)
		}
	}
}

// schurVectors gives the eigenvectors of z*t*z^H for an upper triangular t.
func schurVectors(t, z Mat[complex128]) Mat[complex128] {
	n := t.R
	v := New[complex128](n, n)
	small := math.Max(eps*t.Norm1(), math.SmallestNonzeroFloat64/eps)
	x := make([]complex128, n)
	for k := range n {
		clear(x)
		x[k] = 1
		for i := k - 1; i >= 0; i-- {
			var s complex128
			for j := i + 1; j <= k; j++ {
				s += t.At(i, j) * x[j]
			}
			d := t.At(i, i) - t.At(k, k)
			if abs1(d) < small {
				d = complex(small, 0)
			}
			x[i] = -s / d
		}
		best, norm, at := 0.0, 0.0, 0
		for i := range n {
			var s complex128
			for j := 0; j <= k; j++ {
				s += z.At(i, j) * x[j]
			}
			v.Set(i, k, s)
			norm = math.Hypot(norm, cmplx.Abs(s))
			if m := cmplx.Abs(s); m > best {
				best, at = m, i
			}
		}
		if best == 0 {
			continue
		}
		f := cmplx.Conj(v.At(at, k)) / complex(best*norm, 0)
		for i := range n {
			v.Set(i, k, v.At(i, k)*f)
		}
		v.Set(at, k, complex(real(v.At(at, k)), 0))
	}
	return v
}
