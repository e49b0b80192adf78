package aten

import (
	"github.com/pt2go/pt2/symbolic"
)

// stftOps are the short-time Fourier transform and its inverse.
var stftOps = []Op{
	{Schema: "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(stft(b, a.Tensor(0), a.I64(1), optI64(a, 2), optI64(a, 3), a.OptTensor(4), a.Bool(5), a.V[6], a.Bool(7)))
		}},
	{Schema: "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			x := a.Tensor(0)
			if a.Bool(5) {
				half := a.I64(1) / 2
				flat := x.Dim() == 1
				if x = b.Call("unsqueeze", x, 0); flat {
					x = b.Call("unsqueeze", x, 0)
				}
				x = b.Call("pad", x, []int64{half, half}, a.Str(6))
				if x = b.Call("squeeze.dim", x, 0); flat {
					x = b.Call("squeeze.dim", x, 0)
				}
			}
			return One(stft(b, x, a.I64(1), optI64(a, 2), optI64(a, 3), a.OptTensor(4), a.Bool(7), a.V[8], a.Bool(9)))
		}},
	{Schema: "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
		Decomp: istft},
}

func optI64(a *Args, i int) int64 {
	if v, ok := a.OptInt(i); ok {
		return v.Int64()
	}
	return -1
}

// stftWindow gives a window of n_fft elements: the given one, or ones of win_length, padded evenly on both sides.
func stftWindow(b *Build, x, w *Value, n, win int64) *Value {
	if w == nil {
		w = b.Call("ones", []int64{win}, Kw("dtype", x.DType.Real()))
	}
	if win < n {
		left := (n - win) / 2
		w = b.Call("constant_pad_nd", w, []int64{left, n - win - left}, 0)
	}
	return w
}

func stft(b *Build, x *Value, n, hop, win int64, window *Value, normalized bool, onesided any, complexOut bool) *Value {
	if hop < 0 {
		hop = n / 4
	}
	if win < 0 {
		win = n
	}
	if x.Dim() < 1 || x.Dim() > 2 {
		Fail("stft: expected a 1D or 2D tensor, got %dD", x.Dim())
	}
	if size := x.Sizes[x.Dim()-1].Int64(); n <= 0 || n > size || hop <= 0 || win <= 0 || win > n {
		Fail("stft: expected 0 < n_fft <= %d, hop_length > 0 and 0 < win_length <= n_fft, got n_fft=%d, hop_length=%d, win_length=%d", size, n, hop, win)
	}
	frames := b.Call("unfold", x, -1, n, hop)
	if window != nil || win < n {
		frames = b.Call("mul.Tensor", frames, stftWindow(b, x, window, n, win))
	}
	norm := pick(normalized, 1, 0)
	one, set := onesided.(bool)
	var f *Value
	if frames.DType.IsComplex() {
		f = b.Call("_fft_c2c", frames, []int{frames.Dim() - 1}, norm, true)
	} else {
		f = b.Call("_fft_r2c", frames, []int{frames.Dim() - 1}, norm, !set || one)
	}
	f = b.Call("transpose.int", f, -1, -2)
	if !complexOut {
		return b.Call("view_as_real", f)
	}
	return f
}

// istft adds the windowed inverse transforms of all frames where they overlap and divides by the sum of squared windows.
func istft(b *Build, a *Args) []*Value {
	x, n := a.Tensor(0), a.I64(1)
	hop, win := optI64(a, 2), optI64(a, 3)
	if hop < 0 {
		hop = n / 4
	}
	if win < 0 {
		win = n
	}
	if !x.DType.IsComplex() {
		Fail("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
	}
	if n <= 0 || hop <= 0 || win <= 0 || win > n {
		Fail("istft: n_fft=%d, hop_length=%d, win_length=%d do not fit together", n, hop, win)
	}
	batched := x.Dim() == 3
	if !batched {
		x = b.Call("unsqueeze", x, 0)
	}
	frames := b.Call("transpose.int", x, 1, 2) // [batch, frames, bins]
	norm := pick(a.Bool(6), 1, 2)
	last := frames.Dim() - 1
	one := frames.Sizes[last].Int64() != n
	if v, ok := a.V[7].(bool); ok {
		one = v
	}
	var t *Value
	switch {
	case a.Bool(9):
		t = b.Call("_fft_c2c", frames, []int{last}, norm, false)
	case one:
		t = b.Call("_fft_c2r", frames, []int{last}, norm, symbolic.N(n))
	default:
		t = b.Call("_fft_c2r", b.Call("slice.Tensor", frames, last, 0, n/2+1), []int{last}, norm, symbolic.N(n))
	}
	w := stftWindow(b, t, a.OptTensor(4), n, win)
	t = b.Call("mul.Tensor", t, w)
	count := frames.Sizes[1].Int64()
	total := n + hop*(count-1)
	y := b.Call("zeros", []int64{t.Sizes[0].Int64(), total}, Kw("dtype", t.DType))
	env := b.Call("zeros", []int64{total}, Kw("dtype", w.DType))
	sq := b.Call("mul.Tensor", w, w)
	for i := range count {
		lo := i * hop
		part := b.Call("select.int", t, 1, i)
		y = b.Call("add.Tensor", y, b.Call("constant_pad_nd", part, []int64{lo, total - lo - n}, 0))
		env = b.Call("add.Tensor", env, b.Call("constant_pad_nd", sq, []int64{lo, total - lo - n}, 0))
	}
	start, end := int64(0), total
	if a.Bool(5) {
		start, end = n/2, total-n/2
	}
	length := optI64(a, 8)
	if length >= 0 {
		end = min(start+length, total)
	}
	y = b.Call("div.Tensor", b.Call("slice.Tensor", y, 1, start, end), b.Call("slice.Tensor", env, 0, start, end))
	if length > end-start {
		y = b.Call("constant_pad_nd", y, []int64{0, length - (end - start)}, 0)
	}
	if !batched {
		y = b.Call("squeeze.dim", y, 0)
	}
	return One(y)
}
