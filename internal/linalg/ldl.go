package linalg

import "math"

// LDL factors a symmetric (or, if hermitian, Hermitian) a in place as P*L*D*L^T*P^T by the Bunch-Kaufman method, reading and
// writing its lower triangle. D has blocks of order 1 and 2; piv is as LAPACK's: p > 0 for a block of order 1 whose row was
// exchanged with row p-1, and twice -p for one of order 2.
func LDL[T Scalar](a Mat[T], piv []int32, hermitian bool) (info int) {
	n := a.R
	alpha := (1 + math.Sqrt(17)) / 8
	for k := 0; k < n; {
		kp, step := k, 1
		diag := abs1(a.At(k, k))
		if hermitian {
			diag = math.Abs(realPart(a.At(k, k)))
		}
		imax, colmax := k, 0.0
		for i := k + 1; i < n; i++ {
			if v := abs1(a.At(i, k)); v > colmax {
				imax, colmax = i, v
			}
		}
		switch {
		case math.Max(diag, colmax) == 0:
			if info == 0 {
				info = k + 1
			}
			piv[k] = int32(k + 1)
			k++
			continue
		case diag < alpha*colmax:
			kp, step = ldlPivot(a, k, imax, colmax, diag, alpha)
		}
		ldlSwap(a, k, kp, step, hermitian)
		if hermitian {
			for i := k; i < k+step; i++ {
				a.Set(i, i, FromReal[T](realPart(a.At(i, i))))
			}
		}
		if step == 1 {
			ldlUpdate1(a, k, hermitian)
			piv[k] = int32(kp + 1)
		} else {
			ldlUpdate2(a, k, hermitian)
			piv[k], piv[k+1] = -int32(kp+1), -int32(kp+1)
		}
		k += step
	}
	return info
}

// ldlPivot chooses among no exchange, an exchange with row imax, and a block of order 2.
func ldlPivot[T Scalar](a Mat[T], k, imax int, colmax, diag, alpha float64) (kp, step int) {
	rowmax := 0.0
	for j := k; j < imax; j++ {
		rowmax = math.Max(rowmax, abs1(a.At(imax, j)))
	}
	for i := imax + 1; i < a.R; i++ {
		rowmax = math.Max(rowmax, abs1(a.At(i, imax)))
	}
	switch {
	case diag >= alpha*colmax*(colmax/rowmax):
		return k, 1
	case abs1(a.At(imax, imax)) >= alpha*rowmax:
		return imax, 1
	}
	return imax, 2
}

func ldlSwap[T Scalar](a Mat[T], k, kp, step int, hermitian bool) {
	kk := k + step - 1
	if kp == kk {
		return
	}
	c := func(x T) T { return x }
	if hermitian {
		c = Conj[T]
	}
	swap := func(i, j, p, q int) {
		x, y := a.At(i, j), a.At(p, q)
		a.Set(i, j, y)
		a.Set(p, q, x)
	}
	for i := kp + 1; i < a.R; i++ {
		swap(i, kk, i, kp)
	}
	for j := kk + 1; j < kp; j++ {
		x, y := a.At(j, kk), a.At(kp, j)
		a.Set(j, kk, c(y))
		a.Set(kp, j, c(x))
	}
	a.Set(kp, kk, c(a.At(kp, kk)))
	swap(kk, kk, kp, kp)
	if step == 2 {
		swap(k+1, k, kp, k)
	}
}

func ldlUpdate1[T Scalar](a Mat[T], k int, hermitian bool) {
	r := 1 / a.At(k, k)
	for j := k + 1; j < a.R; j++ {
		w := a.At(j, k)
		if hermitian {
			w = Conj(w)
		}
		w *= r
		for i := j; i < a.R; i++ {
			a.Set(i, j, a.At(i, j)-a.At(i, k)*w)
		}
	}
	for i := k + 1; i < a.R; i++ {
		a.Set(i, k, a.At(i, k)*r)
	}
}

func ldlUpdate2[T Scalar](a Mat[T], k int, hermitian bool) {
	c := func(x T) T { return x }
	d21 := a.At(k+1, k)
	scale := d21 // what the block is divided by
	if hermitian {
		c = Conj[T]
		scale = FromReal[T](Abs(d21))
	}
	d11, d22 := a.At(k+1, k+1)/scale, a.At(k, k)/scale
	u := d21 / scale // 1 if symmetric
	t := 1 / (d11*d22 - 1)
	f := t / scale
	for j := k + 2; j < a.R; j++ {
		x, y := a.At(j, k), a.At(j, k+1)
		wk, wk1 := f*(d11*x-u*y), f*(d22*y-c(u)*x)
		for i := j; i < a.R; i++ {
			a.Set(i, j, a.At(i, j)-a.At(i, k)*c(wk)-a.At(i, k+1)*c(wk1))
		}
		a.Set(j, k, wk)
		a.Set(j, k+1, wk1)
	}
}

// SolveLDL overwrites b with the solution of A*X = b for an A factored by [LDL]. It reports false if piv is not what LDL
// gives.
func SolveLDL[T Scalar](a Mat[T], piv []int32, b Mat[T], hermitian bool) bool {
	n := a.R
	for k := 0; k < n; k++ {
		p := piv[k]
		if p == 0 || p > int32(n) || p < -int32(n) {
			return false
		}
		if p < 0 {
			if k+1 == n || piv[k+1] != p {
				return false
			}
			k++
		}
	}
	c := func(x T) T { return x }
	if hermitian {
		c = Conj[T]
	}
	for k := 0; k < n; {
		if p := int(piv[k]); p > 0 {
			b.swapRows(k, p-1)
			for i := k + 1; i < n; i++ {
				axpy(b.Row(i), b.Row(k), -a.At(i, k))
			}
			d := a.At(k, k)
			for j := range b.Row(k) {
				b.Row(k)[j] /= d
			}
			k++
			continue
		}
		b.swapRows(k+1, int(-piv[k])-1)
		for i := k + 2; i < n; i++ {
			axpy(b.Row(i), b.Row(k), -a.At(i, k))
			axpy(b.Row(i), b.Row(k+1), -a.At(i, k+1))
		}
		o := a.At(k+1, k)
		d0, d1 := a.At(k, k)/c(o), a.At(k+1, k+1)/o
		den := d0*d1 - 1
		for j := range b.C {
			x, y := b.At(k, j)/c(o), b.At(k+1, j)/o
			b.Set(k, j, (d1*x-y)/den)
			b.Set(k+1, j, (d0*y-x)/den)
		}
		k += 2
	}
	for k := n - 1; k >= 0; {
		back := func(r int) {
			for i := k + 1; i < n; i++ {
				axpy(b.Row(r), b.Row(i), -c(a.At(i, r)))
			}
		}
		back(k)
		if p := int(piv[k]); p > 0 {
			b.swapRows(k, p-1)
			k--
			continue
		}
		back(k - 1)
		b.swapRows(k, int(-piv[k])-1)
		k -= 2
	}
	return true
}
