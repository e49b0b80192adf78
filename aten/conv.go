package aten

import (
	"math"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// convOps are convolutions; all of them end in convolution.
var convOps = concat(
	[]Op{
		{Schema: "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
			Tags: Core, Shape: shapeConv, CPU: convKernel},
		{Schema: "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("convolution", a.V[:9]...)) }},
		{Schema: "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
			x := b.Call("permute", a.Tensor(0), []int{1, 2, 0})
			w := b.Call("permute", a.Tensor(1), []int{2, 1, 0})
			y := b.Call("convolution", x, w, a.Tensor(2), []int{1}, []any{a.Int(3)}, []int{1}, false, []int{0}, 1)
			return One(b.Call("permute", y, []int{2, 0, 1}))
		}},
	},
	convNd(1), convNd(2), convNd(3),
)

// convNd makes the forward operators of one rank.
func convNd(n int) []Op {
	d := string(rune('0' + n))
	t := "conv_transpose" + d + "d"
	overload := map[int]string{1: "", 2: ".input", 3: ".input"}[n]
	return []Op{
		{Schema: "conv" + d + "d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" + d + "] stride=1, SymInt[" + d + "] padding=0, SymInt[" + d + "] dilation=1, SymInt groups=1) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				return convCall(b, n, a.Tensor(0), a.Tensor(1), a.V[2], a.Ints(3), a.Ints(4), a.Ints(5), false, zeros(n), a.Int(6))
			}},
		{Schema: "conv" + d + "d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" + d + "] stride=1, str padding=\"valid\", SymInt[" + d + "] dilation=1, SymInt groups=1) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value { return convPadding(b, n, a) }},
		{Schema: t + overload + "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" + d + "] stride=1, SymInt[" + d + "] padding=0, SymInt[" + d + "] output_padding=0, SymInt groups=1, SymInt[" + d + "] dilation=1) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				return convCall(b, n, a.Tensor(0), a.Tensor(1), a.V[2], a.Ints(3), a.Ints(4), a.Ints(7), true, a.Ints(5), a.Int(6))
			}},
	}
}

func zeros(n int) []symbolic.Int { return make([]symbolic.Int, n) }

// convCall adds the batch dimension that an unbatched input lacks.
func convCall(b *Build, n int, x, w *Value, bias any, stride, padding, dilation []symbolic.Int, transposed bool, outPad []symbolic.Int, groups symbolic.Int) []*Value {
	if x.Dim() != n+1 && x.Dim() != n+2 {
		Fail("Expected %dD (unbatched) or %dD (batched) input to conv%dd, but got input of size: %v", n+1, n+2, n, x.Sizes)
	}
	batched := x.Dim() == n+2
	if !batched {
		x = b.Call("unsqueeze", x, 0)
	}
	y := b.Call("convolution", x, w, bias, stride, padding, dilation, transposed, outPad, groups)
	if !batched {
		y = b.Call("squeeze.dim", y, 0)
	}
	return One(y)
}

// convPadding resolves "same" and "valid"; an odd total pads more at the end.
func convPadding(b *Build, n int, a *Args) []*Value {
	x, w := a.Tensor(0), a.Tensor(1)
	stride, dil := nth(a.Ints(3), n), nth(a.Ints(5), n)
	pad := zeros(n)
	switch a.Str(4) {
	case "valid":
	case "same":
		if w.Dim() != n+2 {
			Fail("Expected %d-dimensional input for %d-dimensional weight%s, but got %d-dimensional input of size %s instead", w.Dim(), w.Dim(), listText(w.Sizes), x.Dim(), listText(x.Sizes))
		}
		pads := make([]any, 2*n)
		odd := false
		for i := range n {
			if stride[i].Int64() != 1 {
				Fail("padding='same' is not supported for strided convolutions")
			}
			total := dil[i].Mul(w.Sizes[2+i].SubN(1))
			lo := total.DivN(2)
			pad[i] = lo
			extra := total.Sub(lo).Sub(lo)
			odd = odd || extra.Int64() != 0
			pads[2*(n-1-i)], pads[2*(n-1-i)+1] = symbolic.Int{}, extra
		}
		if odd {
			x = b.Call("constant_pad_nd", x, pads, 0)
		}
	default:
		Fail("Invalid padding string: '%s'", a.Str(4))
	}
	return convCall(b, n, x, w, a.V[2], stride, pad, dil, false, zeros(n), a.Int(6))
}

// nth widens a list of one element to n.
func nth(v []symbolic.Int, n int) []symbolic.Int {
	if len(v) == n {
		return v
	}
	if len(v) != 1 {
		Fail("expected a list of %d values, got %d", n, len(v))
	}
	out := make([]symbolic.Int, n)
	for i := range out {
		out[i] = v[0]
	}
	return out
}

func shapeConv(a *Args) []Meta {
	x, w := a.Tensor(0), a.Tensor(1)
	n := w.Dim() - 2
	if n < 1 || n > 3 {
		Fail("weight should have at least three dimensions")
	}
	if x.Dim() != n+2 {
		Fail("Expected %d-dimensional input for %d-dimensional weight %v, but got %d-dimensional input of size %v instead", n+2, n+2, w.Sizes, x.Dim(), x.Sizes)
	}
	if x.DType != w.DType {
		Fail("Input type (%s) and weight type (%s) should be the same", x.DType, w.DType)
	}
	if bias := a.OptTensor(2); bias != nil && bias.DType != x.DType {
		Fail("Input type (%s) and bias type (%s) should be the same", x.DType, bias.DType)
	}
	stride, pad, dil, outPad := nth(a.Ints(3), n), nth(a.Ints(4), n), nth(a.Ints(5), n), nth(a.Ints(7), n)
	groups := a.Int(8)
	if groups.Le(symbolic.N(0)) {
		Fail("non-positive groups is not supported")
	}
	transposed := a.Bool(6)
	want := w.Sizes[1].Mul(groups)
	if transposed {
		want = w.Sizes[0]
	}
	if !x.Sizes[1].Eq(want) {
		Fail("Given groups=%v, weight of size %v, expected input%v to have %v channels, but got %v channels instead", groups, w.Sizes, x.Sizes, want, x.Sizes[1])
	}
	sizes := []symbolic.Int{x.Sizes[0], w.Sizes[0]}
	if transposed {
		sizes[1] = w.Sizes[1].Mul(groups)
		if w.Sizes[0].Mod(groups).Ne(symbolic.N(0)) {
			Fail("Given groups=%v, expected weight to be divisible by %v at dimension 0, but got weight of size %s instead", groups, groups, sizesText(w.Sizes))
		}
	} else if w.Sizes[0].Lt(groups) {
		Fail("Given groups=%v, expected weight to be at least %v at dimension 0, but got weight of size %s instead", groups, groups, sizesText(w.Sizes))
	} else if w.Sizes[0].Mod(groups).Ne(symbolic.N(0)) {
		Fail("Given groups=%v, expected weight to be divisible by %v at dimension 0, but got weight of size %v instead", groups, groups, w.Sizes)
	}
	if bias := a.OptTensor(2); bias != nil && (bias.Dim() != 1 || !bias.Sizes[0].Eq(sizes[1])) {
		Fail("Given weight of size %s, expected bias to be 1-dimensional with %v elements, but got bias of size %s instead", sizesText(w.Sizes), sizes[1], sizesText(bias.Sizes))
	}
	for i := range n {
		if w.Sizes[2+i].Int64() <= 0 || sizes[1].Int64() <= 0 {
			Fail("could not create a primitive descriptor for the convolution forward propagation primitive: weight of size %s", sizesText(w.Sizes))
		}
		if transposed && outPad[i].Int64() < 0 {
			Fail("negative output_padding is not supported")
		}
		if most := int64(math.MaxInt32); stride[i].Int64() > most || pad[i].Int64() > most || dil[i].Int64() > most || outPad[i].Int64() > most {
			Fail("stride %v, padding %v, dilation %v and output_padding %v have to fit 32 bits", stride, pad, dil, outPad)
		}
		if stride[i].Int64() <= 0 {
			Fail("non-positive stride is not supported")
		}
		if pad[i].Int64() < 0 {
			Fail("negative padding is not supported")
		}
		if dil[i].Int64() <= 0 {
			Fail("dilation should be greater than zero")
		}
		span := dil[i].Mul(w.Sizes[2+i].SubN(1)).AddN(1)
		l := x.Sizes[2+i]
		if transposed {
			sizes = append(sizes, l.SubN(1).Mul(stride[i]).Sub(pad[i].MulN(2)).Add(span).Add(outPad[i]))
			continue
		}
		if l.Add(pad[i].MulN(2)).Lt(span) {
			Fail("Calculated padded input size per channel: (%v). Kernel size: (%v). Kernel size can't be greater than actual input size", l.Add(pad[i].MulN(2)), span)
		}
		sizes = append(sizes, l.Add(pad[i].MulN(2)).Sub(span).FloorDiv(stride[i]).AddN(1))
	}
	for _, s := range sizes[2:] {
		if s.Int64() < 0 {
			Fail("Given input size per channel: %v, the calculated output size is negative: %v", x.Sizes[2:], sizes[2:])
		}
	}
	m := Contig(x.DType, sizes...)
	if (n == 2 || n == 3) && (x.SuggestChannelsLast() || w.SuggestChannelsLast()) {
		m.Strides = ChannelsLastStrides(sizes)
	}
	return []Meta{m}
}

// ConvSpec brings a convolution to three spatial dimensions: the arguments of aten.convolution and its result.
func ConvSpec(a *Args, out *Meta) cpu.Conv {
	x, w := a.Tensor(0), a.Tensor(1)
	n := w.Dim() - 2
	three := func(v []symbolic.Int, fill int) (r [3]int) {
		for i := range 3 {
			r[i] = fill
			if j := i - (3 - n); j >= 0 {
				r[i] = int(v[j].Int64())
			}
		}
		return r
	}
	return cpu.Conv{
		N: int(x.Sizes[0].Int64()), In: int(x.Sizes[1].Int64()), Out: int(out.Sizes[1].Int64()), Groups: int(a.I64(8)),
		Size: three(x.Sizes[2:], 1), Kernel: three(w.Sizes[2:], 1), OutSize: three(out.Sizes[2:], 1),
		Stride: three(nth(a.Ints(3), n), 1), Pad: three(nth(a.Ints(4), n), 0), Dilation: three(nth(a.Ints(5), n), 1),
	}
}

// specOf is [ConvSpec] of a kernel's call.
func specOf(k *Kernel) cpu.Conv {
	m := MetaOf(k.Out[0])
	return ConvSpec(k.Args, &m)
}

func convKernel(k *Kernel) {
	out := k.Out[0]
	if out.Numel() == 0 {
		return
	}
	dt := out.DType()
	switch {
	case dt == tensor.Float32 || dt.IsReduced():
		x, w := k.as(k.T(0), tensor.Float32), k.as(k.T(1), tensor.Float32)
		var bias []float32
		if b := k.OptT(2); b != nil {
			bias = tensor.Contiguous[float32](k.as(b, tensor.Float32))
		}
		dst := out
		if dt != tensor.Float32 || !out.IsContiguous() {
			dst = tensor.New(tensor.Float32, out.Sizes()...)
		}
		c := specOf(k)
		if k.Bool(6) {
			c.TransposedF32(k.Pool, tensor.Contiguous[float32](x), tensor.Contiguous[float32](w), bias, tensor.Contiguous[float32](dst))
		} else {
			c.ForwardF32(k.Pool, tensor.Contiguous[float32](x), tensor.Contiguous[float32](w), bias, tensor.Contiguous[float32](dst))
		}
		if dst != out {
			Copy(k.Pool, out, dst)
		}
	case dt == tensor.Float64:
		convGeneric[float64](k, dt)
	case dt == tensor.Complex128 || dt == tensor.Complex64:
		convGeneric[complex128](k, tensor.Complex128)
	case dt.IsInt():
		convGeneric[int64](k, tensor.Int64)
	default:
		FailAs("NotImplementedError", "\"slow_conv2d_cpu\" not implemented for '%s'", dt.CPPName())
	}
}

func convGeneric[T float64 | complex128 | int64](k *Kernel, dt tensor.DType) {
	x, w, out := k.as(k.T(0), dt), k.as(k.T(1), dt), k.Out[0]
	var bias []T
	if b := k.OptT(2); b != nil {
		bias = tensor.Contiguous[T](k.as(b, dt))
	}
	dst := tensor.New(dt, out.Sizes()...)
	c := specOf(k)
	if k.Bool(6) {
		cpu.ConvTransposed(&c, tensor.Contiguous[T](x), tensor.Contiguous[T](w), bias, tensor.Contiguous[T](dst))
	} else {
		cpu.ConvDirect(&c, tensor.Contiguous[T](x), tensor.Contiguous[T](w), bias, tensor.Contiguous[T](dst))
	}
	Copy(k.Pool, out, dst)
}
