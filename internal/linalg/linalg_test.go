package linalg

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// random gives a matrix of normal numbers, complex ones where T is.
func random[T Scalar](r *rand.Rand, m, n int) Mat[T] {
	a := New[T](m, n)
	for i := range a.A {
		switch p := any(&a.A[i]).(type) {
		case *float64:
			*p = r.NormFloat64()
		case *complex128:
			*p = complex(r.NormFloat64(), r.NormFloat64())
		}
	}
	return a
}

func near[T Scalar](t *testing.T, what string, got, want Mat[T]) {
	t.Helper()
	if got.R != want.R || got.C != want.C {
		t.Fatalf("%s: [%d, %d], want [%d, %d]", what, got.R, got.C, want.R, want.C)
	}
	for i := range got.A {
		if d := Abs(got.A[i] - want.A[i]); !(d < 1e-9) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got.A[i], want.A[i])
		}
	}
}

func TestFactorizations(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 20} {
		testField[float64](t, n)
		testField[complex128](t, n)
	}
}

func testField[T Scalar](t *testing.T, n int) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for _, m := range []int{n, n + 1, 2*n + 3} {
		a := random[T](r, m, n)
		f := a.Clone()
		tau := QR(f)
		q := Q(f, tau, n)
		up := New[T](n, n)
		for i := range n {
			copy(up.Row(i)[i:], f.Row(i)[i:])
		}
		near(t, "Q*R", Mul(q, up), a)
		near(t, "Q^H*Q", Mul(q.H(), q), Eye[T](n, n))
		c := a.Clone()
		MulQ(f, tau, c, true, true)
		near(t, "Q^H*A", Mat[T]{n, n, c.A[:n*n]}, up)
		for _, x := range []Mat[T]{a, a.H()} {
			for _, full := range []bool{false, true} {
				testSVD(t, x, full)
			}
		}
	}
	a, b := random[T](r, n, n), random[T](r, n, 3)
	lu, piv := a.Clone(), make([]int32, n)
	if LU(lu, piv) != 0 {
		t.Fatal("LU: singular")
	}
	x := b.Clone()
	SolveLU(lu, piv, x, false)
	near(t, "A*X", Mul(a, x), b)
	x = b.Clone()
	SolveLU(lu, piv, x, true)
	near(t, "A^H*X", Mul(a.H(), x), b)

	h := Mul(a, a.H())
	l := h.Clone()
	if Cholesky(l) != 0 {
		t.Fatal("Cholesky: not positive")
	}
	near(t, "L*L^H", Mul(l, l.H()), h)
	w, v, ok := Eigh(h.Clone(), true)
	if !ok {
		t.Fatal("Eigh: no convergence")
	}
	near(t, "A*V", Mul(h, v), mulDiag(v, w))
	testLDL(t, a, b)
}

func mulDiag[T Scalar](v Mat[T], w []float64) Mat[T] {
	p := v.Clone()
	for i := range p.R {
		for j := range p.C {
			p.Row(i)[j] *= FromReal[T](w[j])
		}
	}
	return p
}

func testSVD[T Scalar](t *testing.T, a Mat[T], full bool) {
	t.Helper()
	u, s, vh, ok := SVD(a.Clone(), true, full)
	if !ok {
		t.Fatal("SVD: no convergence")
	}
	k := min(a.R, a.C)
	near(t, "U^H*U", Mul(u.H(), u), Eye[T](u.C, u.C))
	near(t, "Vh*V", Mul(vh, vh.H()), Eye[T](vh.R, vh.R))
	us := New[T](a.R, vh.R)
	for i := range us.R {
		for j := range k {
			us.Set(i, j, u.At(i, j)*FromReal[T](s[j]))
		}
	}
	near(t, "U*S*Vh", Mul(us, vh), a)
	_, s2, _, _ := SVD(a.Clone(), false, false)
	for i := range s {
		if math.Abs(s[i]-s2[i]) > 1e-9 || i > 0 && s[i] > s[i-1] {
			t.Fatalf("singular values %v and %v", s, s2)
		}
	}
}

func testLDL[T Scalar](t *testing.T, a, b Mat[T]) {
	t.Helper()
	n := a.R
	for _, hermitian := range []bool{false, true} {
		s := New[T](n, n)
		for i := range n {
			for j := range n {
				o := a.At(j, i)
				if hermitian {
					o = Conj(o)
				}
				s.Set(i, j, a.At(i, j)+o)
			}
		}
		f, piv, x := s.Clone(), make([]int32, n), b.Clone()
		LDL(f, piv, hermitian)
		if !SolveLDL(f, piv, x, hermitian) {
			t.Fatal("LDL: pivots")
		}
		near(t, "LDL: A*X", Mul(s, x), b)
	}
}

func TestEig(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 20} {
		r := rand.New(rand.NewPCG(2, uint64(n)))
		re := random[float64](r, n, n)
		c := New[complex128](n, n)
		for i, v := range re.A {
			c.A[i] = complex(v, 0)
		}
		w, v, ok := EigReal(re, true)
		checkEig(t, c, w, v, ok)
		c = random[complex128](r, n, n)
		w, v, ok = EigComplex(c.Clone(), true)
		checkEig(t, c, w, v, ok)
	}
}

func checkEig(t *testing.T, a Mat[complex128], w []complex128, v Mat[complex128], ok bool) {
	t.Helper()
	if !ok {
		t.Fatal("no convergence")
	}
	vw := v.Clone()
	for i := range vw.R {
		for j := range vw.C {
			vw.Row(i)[j] *= w[j]
		}
	}
	near(t, "A*V", Mul(a, v), vw)
	for j := range v.C {
		norm := 0.0
		for i := range v.R {
			norm = math.Hypot(norm, cmplx.Abs(v.At(i, j)))
		}
		if math.Abs(norm-1) > 1e-12 {
			t.Fatalf("vector %d has norm %v", j, norm)
		}
	}
}
