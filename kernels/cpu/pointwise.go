package cpu

// The functions of this file work element by element on slices of equal length, any length including 0. dst may be one of the
// inputs, but must not overlap them otherwise. The portable forms are computed in float64 and rounded once, so they are off by
// at most half an ulp (one where the formula subtracts); the assembly's error is given by its variant's row in the tests.
// NaN, infinities, signed zeros and denormals come out as PyTorch gives them.

type (
	unaryFunc   = func(dst, x *float32, n int)
	binaryFunc  = func(dst, a, b *float32, n int)
	scalarFunc  = func(dst, a *float32, s float32, n int)
	unarySlice  = func(dst, x []float32)
	binarySlice = func(dst, a, b []float32)
	scalarSlice = func(dst, a []float32, s float32)
)

// A pointwise function's row: its name in tests, the portable form, and the assembly (nil where there is none).
type (
	unaryRow struct {
		name    string
		generic unarySlice
		avx2    unaryFunc
		avx512  unaryFunc
		limit   float32 // the assembly holds for |x| up to this; 0: for all
	}
	binaryRow struct {
		name    string
		generic binarySlice
		avx2    binaryFunc
		avx512  binaryFunc
	}
	scalarRow struct {
		name    string
		generic scalarSlice
		avx2    scalarFunc
		avx512  scalarFunc
	}
)

// variant is the assembly that this CPU has, nil for none.
func (r *unaryRow) variant() unaryFunc { return variant(r.avx2, r.avx512) }

// variant chooses by the CPU's features. (A table's field would not do: they are turned off in tests.)
func variant[F unaryFunc | binaryFunc | scalarFunc](avx2, avx512 F) F {
	switch {
	case hasAVX512:
		return avx512
	case hasAVX2:
		return avx2
	}
	return nil
}

func (r *unaryRow) run(dst, x []float32) {
	x = x[:len(dst)]
	f := r.variant()
	switch {
	case f == nil || len(dst) == 0:
		r.generic(dst, x)
	case r.limit == 0:
		f(&dst[0], &x[0], len(dst))
	default:
		r.limited(f, dst, x)
	}
}

// limited leaves blocks with numbers beyond the limit to the portable form.
func (r *unaryRow) limited(f unaryFunc, dst, x []float32) {
	const block = 1024
	for len(x) > 0 {
		n := min(block, len(x))
		if MaxF32(x[:n]) <= r.limit && MinF32(x[:n]) >= -r.limit {
			f(&dst[0], &x[0], n)
		} else {
			r.generic(dst[:n], x[:n])
		}
		dst, x = dst[n:], x[n:]
	}
}

func (r *binaryRow) run(dst, a, b []float32) {
	if f := variant(r.avx2, r.avx512); f != nil && len(dst) > 0 {
		f(&dst[0], &a[:len(dst)][0], &b[:len(dst)][0], len(dst))
		return
	}
	r.generic(dst, a[:len(dst)], b[:len(dst)])
}

func (r *scalarRow) run(dst, a []float32, s float32) {
	if f := variant(r.avx2, r.avx512); f != nil && len(dst) > 0 {
		f(&dst[0], &a[:len(dst)][0], s, len(dst))
		return
	}
	r.generic(dst, a[:len(dst)], s)
}

// AddF32 is dst = a + b.
func AddF32(dst, a, b []float32) { rowAdd.run(dst, a, b) }

// SubF32 is dst = a - b.
func SubF32(dst, a, b []float32) { rowSub.run(dst, a, b) }

// MulF32 is dst = a * b.
func MulF32(dst, a, b []float32) { rowMul.run(dst, a, b) }

// DivF32 is dst = a / b.
func DivF32(dst, a, b []float32) { rowDiv.run(dst, a, b) }

// MaximumF32 is the larger of a and b; NaN if one is NaN.
func MaximumF32(dst, a, b []float32) { rowMaximum.run(dst, a, b) }

// MinimumF32 is the smaller of a and b; NaN if one is NaN.
func MinimumF32(dst, a, b []float32) { rowMinimum.run(dst, a, b) }

// AddScalarF32 is dst = a + s.
func AddScalarF32(dst, a []float32, s float32) { rowAddScalar.run(dst, a, s) }

// RSubScalarF32 is dst = s - a.
func RSubScalarF32(dst, a []float32, s float32) { rowRSubScalar.run(dst, a, s) }

// MulScalarF32 is dst = a * s.
func MulScalarF32(dst, a []float32, s float32) { rowMulScalar.run(dst, a, s) }

// DivScalarF32 is dst = a / s.
func DivScalarF32(dst, a []float32, s float32) { rowDivScalar.run(dst, a, s) }

// RDivScalarF32 is dst = s / a.
func RDivScalarF32(dst, a []float32, s float32) { rowRDivScalar.run(dst, a, s) }

// MaximumScalarF32 is the larger of a and s; NaN if one is NaN.
func MaximumScalarF32(dst, a []float32, s float32) { rowMaximumScalar.run(dst, a, s) }

// MinimumScalarF32 is the smaller of a and s; NaN if one is NaN.
func MinimumScalarF32(dst, a []float32, s float32) { rowMinimumScalar.run(dst, a, s) }

// LeakyReLUF32 is x where x > 0, else x * slope.
func LeakyReLUF32(dst, x []float32, slope float32) { rowLeakyReLU.run(dst, x, slope) }

// FillF32 is dst = s.
func FillF32(dst []float32, s float32) {
	if len(dst) > 0 {
		one := [1]float32{s}
		RepeatF32(dst, one[:], len(dst))
	}
}

// ClampF32 limits x to [lo, hi]; NaN stays, and where lo > hi the result is hi.
func ClampF32(dst, x []float32, lo, hi float32) {
	MaximumScalarF32(dst, x, lo)
	MinimumScalarF32(dst, dst, hi)
}

// AxpyF32 is y += s * x, with one rounding where the CPU has fused multiply-add.
func AxpyF32(y, x []float32, s float32) { axpy(y, x[:len(y)], s) }

// AddScaledF32 is dst = a + s * b, PyTorch's add with alpha.
func AddScaledF32(dst, a, b []float32, s float32) {
	if s == 1 {
		AddF32(dst, a, b)
		return
	}
	if len(dst) > 0 && &dst[0] == &a[0] {
		AxpyF32(dst, b, s)
		return
	}
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + s*b[i]
	}
}

// NegF32 is -x.
func NegF32(dst, x []float32) { rowNeg.run(dst, x) }

// AbsF32 is |x|.
func AbsF32(dst, x []float32) { rowAbs.run(dst, x) }

// SquareF32 is x*x.
func SquareF32(dst, x []float32) { MulF32(dst, x, x) }

// CubeF32 is x*x*x.
func CubeF32(dst, x []float32) { rowCube.run(dst, x) }

// SqrtF32 is the square root, correctly rounded; NaN below zero.
func SqrtF32(dst, x []float32) { rowSqrt.run(dst, x) }

// RsqrtF32 is 1/sqrt(x), as a rounded square root and a rounded division.
func RsqrtF32(dst, x []float32) { rowRsqrt.run(dst, x) }

// ReciprocalF32 is 1/x.
func ReciprocalF32(dst, x []float32) { RDivScalarF32(dst, x, 1) }

// ReLUF32 is the larger of x and 0; NaN stays.
func ReLUF32(dst, x []float32) { rowReLU.run(dst, x) }

// FloorF32 rounds down.
func FloorF32(dst, x []float32) { rowFloor.run(dst, x) }

// CeilF32 rounds up.
func CeilF32(dst, x []float32) { rowCeil.run(dst, x) }

// RoundF32 rounds to the nearest integer, halves to even.
func RoundF32(dst, x []float32) { rowRound.run(dst, x) }

// TruncF32 rounds towards zero.
func TruncF32(dst, x []float32) { rowTrunc.run(dst, x) }

// ExpF32 is e^x.
func ExpF32(dst, x []float32) { rowExp.run(dst, x) }

// Expm1F32 is e^x - 1, without cancellation near 0.
func Expm1F32(dst, x []float32) { rowExpm1.run(dst, x) }

// LogF32 is the natural logarithm: -Inf at 0, NaN below.
func LogF32(dst, x []float32) { rowLog.run(dst, x) }

// Log1pF32 is log(1 + x), without cancellation near 0.
func Log1pF32(dst, x []float32) { rowLog1p.run(dst, x) }

// TanhF32 is the hyperbolic tangent.
func TanhF32(dst, x []float32) { rowTanh.run(dst, x) }

// SigmoidF32 is 1 / (1 + e^-x).
func SigmoidF32(dst, x []float32) { rowSigmoid.run(dst, x) }

// SiLUF32 is x * sigmoid(x).
func SiLUF32(dst, x []float32) { rowSiLU.run(dst, x) }

// ErfF32 is the error function.
func ErfF32(dst, x []float32) { rowErf.run(dst, x) }

// SinF32 is the sine of x in radians.
func SinF32(dst, x []float32) { rowSin.run(dst, x) }

// CosF32 is the cosine of x in radians.
func CosF32(dst, x []float32) { rowCos.run(dst, x) }

// HardSwishF32 is x * min(max(x+3, 0), 6) / 6.
func HardSwishF32(dst, x []float32) { rowHardSwish.run(dst, x) }

// HardSigmoidF32 is min(max(x+3, 0), 6) / 6.
func HardSigmoidF32(dst, x []float32) { rowHardSigmoid.run(dst, x) }

// MishF32 is x * tanh(log(1 + e^x)).
func MishF32(dst, x []float32) { rowMish.run(dst, x) }

// PReLUF32 is x where x > 0, else x * slope.
func PReLUF32(dst, x, slope []float32) { rowPReLU.run(dst, x, slope) }

// WhereF32 is a where c is not 0, else b; dst may be any of the three.
func WhereF32(dst, c, a, b []float32) {
	c, a, b = c[:len(dst)], a[:len(dst)], b[:len(dst)]
	if hasAVX512 && len(dst) > 0 {
		whereF32AVX512(&dst[0], &c[0], &a[0], &b[0], len(dst))
		return
	}
	if hasAVX2 && len(dst) > 0 {
		whereF32AVX2(&dst[0], &c[0], &a[0], &b[0], len(dst))
		return
	}
	for i := range dst {
		if c[i] != 0 {
			dst[i] = a[i]
		} else {
			dst[i] = b[i]
		}
	}
}

// pieceLen is how many elements go by at once where a function is made of others.
const pieceLen = 512

// ELUF32 is scale*x where x > 0, else scale*alpha*(e^(x*inputScale) - 1).
func ELUF32(dst, x []float32, alpha, scale, inputScale float32) {
	var tmp, pos [pieceLen]float32
	for len(dst) > 0 {
		n := min(pieceLen, len(dst))
		d, s, t, p := dst[:n], x[:n], tmp[:n], pos[:n]
		ReLUF32(p, s) // not 0 where x > 0 or NaN
		MulScalarF32(t, s, inputScale)
		Expm1F32(t, t)
		MulScalarF32(t, t, alpha*scale)
		MulScalarF32(d, s, scale)
		WhereF32(d, p, d, t)
		dst, x = dst[n:], x[n:]
	}
}

// SoftplusF32 is log(1 + e^(x*beta)) / beta, and x where x*beta > threshold.
func SoftplusF32(dst, x []float32, beta, threshold float32) {
	var tmp, over [pieceLen]float32
	for len(dst) > 0 {
		n := min(pieceLen, len(dst))
		d, s, t, o := dst[:n], x[:n], tmp[:n], over[:n]
		MulScalarF32(t, s, beta)
		AddScalarF32(o, t, -threshold)
		ReLUF32(o, o) // not 0 where x*beta is above the threshold, or NaN
		ExpF32(t, t)
		Log1pF32(t, t)
		DivScalarF32(t, t, beta)
		WhereF32(d, o, s, t)
		dst, x = dst[n:], x[n:]
	}
}
