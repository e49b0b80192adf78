package linalg

// LU factors a [M, N] in place as P*L*U with partial pivoting: L (unit diagonal) below, U on and above the diagonal. Row i was
// exchanged with row piv[i]-1; len(piv) is min(M, N). info is 0, or 1 plus the index of the first zero on U's diagonal.
func LU[T Scalar](a Mat[T], piv []int32) (info int) {
	for k := range min(a.R, a.C) {
		p, best := k, abs1(a.At(k, k))
		for i := k + 1; i < a.R; i++ {
			if v := abs1(a.At(i, k)); v > best {
				p, best = i, v
			}
		}
		piv[k] = int32(p + 1)
		if a.At(p, k) == 0 {
			if info == 0 {
				info = k + 1
			}
			continue
		}
		a.swapRows(k, p)
		inv := 1 / a.At(k, k)
		top := a.Row(k)[k+1:]
		for i := k + 1; i < a.R; i++ {
			row := a.Row(i)
			row[k] *= inv
			axpy(row[k+1:], top, -row[k])
		}
	}
	return info
}

// Permute applies the row exchanges of a factorization to b: forward gives P^T*b, else P*b. Exchanges with rows that b does
// not have are left out.
func Permute[T Scalar](b Mat[T], piv []int32, forward bool) {
	for i := range piv {
		k := i
		if !forward {
			k = len(piv) - 1 - i
		}
		if p := int(piv[k]) - 1; p >= 0 && p < b.R && k < b.R {
			b.swapRows(k, p)
		}
	}
}

// SolveLU overwrites b with the solution of A*X = b, or of A^H*X = b if adjoint, for a square factored A.
func SolveLU[T Scalar](lu Mat[T], piv []int32, b Mat[T], adjoint bool) {
	if !adjoint {
		Permute(b, piv, true)
		SolveTri(lu, b, false, true)
		SolveTri(lu, b, true, false)
		return
	}
	h := lu.H() // U^H is lower, L^H is upper with unit diagonal
	SolveTri(h, b, false, false)
	SolveTri(h, b, true, true)
	Permute(b, piv, false)
}

// SolveTri overwrites b with the solution of A*X = b for a triangular A, whose other triangle is not read; nor is the diagonal
// if unit.
func SolveTri[T Scalar](a, b Mat[T], upper, unit bool) {
	n := a.R
	for s := range n {
		i := s
		lo, hi := 0, s
		if upper {
			i = n - 1 - s
			lo, hi = i+1, n
		}
		row, x := a.Row(i), b.Row(i)
		for k := lo; k < hi; k++ {
			if row[k] != 0 {
				axpy(x, b.Row(k), -row[k])
			}
		}
		if unit {
			continue
		}
		d := row[i]
		for j := range x {
			x[j] /= d
		}
	}
}

// Cholesky factors a Hermitian a in place as L*L^H, reading its lower triangle; the upper one becomes 0. info is 0, or 1 plus
// the index of the first leading minor that is not positive.
func Cholesky[T Scalar](a Mat[T]) (info int) {
	n := a.R
	conj := make([]T, n)
	for j := range n {
		row := a.Row(j)
		d := realPart(row[j])
		for k, v := range row[:j] {
			conj[k] = Conj(v)
			d -= realPart(v * conj[k])
		}
		if !(d > 0) {
			info = j + 1
			break
		}
		d = sqrt(d)
		row[j] = FromReal[T](d)
		inv := FromReal[T](1 / d)
		for i := j + 1; i < n; i++ {
			r := a.Row(i)
			s := r[j]
			for k, v := range r[:j] {
				s -= v * conj[k]
			}
			r[j] = s * inv
		}
	}
	for i := range n {
		clear(a.Row(i)[i+1:])
	}
	return info
}
