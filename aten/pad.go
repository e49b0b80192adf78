package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// padOps put a border around tensors, and move elements between channels and space.
var padOps = []Op{
	{
		Schema: "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
		Tags:   Core,
		Shape:  shapeConstantPad,
		CPU:    constantPadKernel,
	},
	{
		Schema: "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
		Decomp: padDecomp,
	},
	{
		Schema: "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			modes := [...]string{"constant", "reflect", "replicate", "circular"}
			m := a.I64(2)
			Check(m >= 0 && int(m) < len(modes), "Unrecognised padding mode")
			return One(b.Call("pad", a.Tensor(0), a.V[1], modes[m], a.V[3]))
		},
	},
	{
		Schema: "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
		Decomp: circularPad,
	},
	borderPad("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", 1, true),
	borderPad("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", 2, true),
	borderPad("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", 3, true),
	borderPad("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", 1, false),
	borderPad("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", 2, false),
	borderPad("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", 3, false),
	{
		Schema: "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
		Tags:   0,
		Shape: func(a *Args) []Meta {
			x, r := a.Tensor(0), a.Int(1)
			n := x.Dim()
			Check(n >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with %d dimension(s)", n)
			Check(r.Gt(symbolic.N(0)), "pixel_shuffle expects a positive upscale_factor, but got %v", r)
			r2 := r.Mul(r)
			Check(x.Sizes[n-3].Mod(r2).Eq(symbolic.N(0)), "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)=%v is not divisible by %v", x.Sizes[n-3], r2)
			sizes := append(cloneInts(x.Sizes[:n-3]), x.Sizes[n-3].FloorDiv(r2), x.Sizes[n-2].Mul(r), x.Sizes[n-1].Mul(r))
			return []Meta{suggested(x, sizes)}
		},
		CPU: func(k *Kernel) { pixelShuffle(k, k.Out[0], k.T(0), k.I64(1), false) },
	},
	{
		Schema: "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
		Shape: func(a *Args) []Meta {
			x, r := a.Tensor(0), a.Int(1)
			n := x.Dim()
			zero := symbolic.N(0)
			Check(n >= 3, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with %d dimension(s)", n)
			Check(r.Gt(zero), "pixel_unshuffle expects a positive downscale_factor, but got %v", r)
			Check(x.Sizes[n-2].Mod(r).Eq(zero), "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=%v is not divisible by %v", x.Sizes[n-2], r)
			Check(x.Sizes[n-1].Mod(r).Eq(zero), "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=%v is not divisible by %v", x.Sizes[n-1], r)
			sizes := append(cloneInts(x.Sizes[:n-3]), x.Sizes[n-3].Mul(r.Mul(r)), x.Sizes[n-2].FloorDiv(r), x.Sizes[n-1].FloorDiv(r))
			return []Meta{suggested(x, sizes)}
		},
		CPU: func(k *Kernel) { pixelShuffle(k, k.T(0), k.Out[0], k.I64(1), true) },
	},
	shuffleOp("channel_shuffle(Tensor self, SymInt groups) -> Tensor"),
	shuffleOp("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor"),
	{
		Schema: "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
		Shape:  shapeIm2col,
		CPU: func(k *Kernel) {
			g := newSlidingBlocks(k.I64s(1), k.I64s(2), k.I64s(3), k.I64s(4))
			x, o := withBatch(k.T(0), 4), withBatch(k.Out[0], 3)
			fillAll(k.Pool, k.Out[0], IntS(0))
			g.each(x.Sizes()[2], x.Sizes()[3], x.Sizes()[0], x.Sizes()[1], func(img, col colView) {
				Copy(nil, col.of(o), img.of(x))
			})
		},
	},
	{
		Schema: "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
		Tags:   Core,
		Shape:  shapeCol2im,
		CPU: func(k *Kernel) {
			g := newSlidingBlocks(k.I64s(2), k.I64s(3), k.I64s(4), k.I64s(5))
			x, o := withBatch(k.T(0), 3), withBatch(k.Out[0], 4)
			fillAll(k.Pool, k.Out[0], IntS(0))
			row := combineSum.row(o.DType())
			quiet := &Kernel{Args: k.Args}
			g.each(o.Sizes()[2], o.Sizes()[3], o.Sizes()[0], o.Sizes()[1], func(img, col colView) {
				eachPlace(quiet, img.of(o), col.of(x), []int64{0}, []int64{0}, row)
			})
		},
	},
	{
		Schema: "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> Tensor",
		Decomp: padSequence,
	},
}

// suggested is fresh memory of the given sizes in the memory format that x suggests.
func suggested(x *Value, sizes []symbolic.Int) Meta {
	m := Contig(x.DType, sizes...)
	if len(sizes) == x.Dim() && x.SuggestChannelsLast() {
		m.Strides = ChannelsLastStrides(sizes)
	}
	return m
}

func shapeConstantPad(a *Args) []Meta {
	x, pad := a.Tensor(0), a.Ints(1)
	Check(len(pad)%2 == 0, "Length of pad must be even but instead it equals %d", len(pad))
	n := len(pad) / 2
	Check(n <= x.Dim(), "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %d while the input has %d dimensions.", len(pad), x.Dim())
	sizes := cloneInts(x.Sizes)
	for i := range n {
		d := x.Dim() - 1 - i
		zero := symbolic.N(0)
		cropped := sizes[d].Add(pad[2*i].Min(zero))
		Check(cropped.Ge(zero) && cropped.Add(pad[2*i+1].Min(zero)).Ge(zero), "narrow(): length must be non-negative.")
		sizes[d] = sizes[d].Add(pad[2*i]).Add(pad[2*i+1])
		Check(sizes[d].Ge(zero), "The input size %v, plus negative padding %v and %v resulted in a negative output size, which is invalid. Check dimension %d of your input.", x.Sizes[d], pad[2*i], pad[2*i+1], d)
	}
	return []Meta{suggested(x, sizes)}
}

func constantPadKernel(k *Kernel) {
	o, x, pad := k.Out[0], k.T(0), k.I64s(1)
	fillAll(k.Pool, o, k.Scalar(2))
	sizes := append([]int64(nil), x.Sizes()...)
	to, from := o.Offset(), x.Offset()
	for i := range len(pad) / 2 {
		d := x.Dim() - 1 - i
		for side, p := range pad[2*i : 2*i+2] {
			if p < 0 {
				sizes[d] += p
			}
			if side == 0 {
				to += max(p, 0) * o.Strides()[d]
				from += max(-p, 0) * x.Strides()[d]
			}
		}
		if sizes[d] <= 0 {
			return
		}
	}
	if o.Numel() == 0 || x.Numel() == 0 {
		return
	}
	Copy(k.Pool, o.WithView(sizes, o.Strides(), to), x.WithView(sizes, x.Strides(), from))
}

func padDecomp(b *Build, a *Args) []*Value {
	x, pad, mode := a.Tensor(0), a.Ints(1), a.Str(2)
	Check(len(pad)%2 == 0, "Padding length must be divisible by 2")
	Check(len(pad) <= 2*x.Dim(), "Padding length should be less than or equal to two times the input dimension but got padding length %d and input of dimension %d", len(pad), x.Dim())
	if mode == "constant" {
		value := any(0.0)
		if a.Has(3) {
			value = a.V[3]
		}
		return One(b.Call("constant_pad_nd", x, pad, value))
	}
	if v, ok := a.OptFloat(3); ok {
		Check(v == 0, "Padding mode \"%s\" doesn't take in value argument", mode)
	}
	n := len(pad) / 2
	if n < 1 || n > 3 || x.Dim() != n+1 && x.Dim() != n+2 {
		FailAs("NotImplementedError", "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
	}
	dims := [...]string{"1d", "2d", "3d"}[n-1]
	switch mode {
	case "reflect":
		return One(b.Call("reflection_pad"+dims, x, pad))
	case "replicate":
		return One(b.Call("replication_pad"+dims, x, pad))
	case "circular":
		return One(b.Call("_pad_circular", x, pad))
	}
	FailAs("NotImplementedError", "Unrecognised padding mode %s", mode)
	return nil
}

func borderPad(schema string, n int, reflect bool) Op {
	return Op{
		Schema: schema,
		Shape: func(a *Args) []Meta {
			x, pad := a.Tensor(0), a.Ints(1)
			Check(len(pad) == 2*n, "padding size is expected to be %d, but got: %d", 2*n, len(pad))
			Check(x.Dim() == n+1 || x.Dim() == n+2, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", n+1, n+2, sizesText(x.Sizes))
			sizes := cloneInts(x.Sizes)
			zero := symbolic.N(0)
			for d := x.Dim() - n - 1; d < x.Dim(); d++ {
				Check(sizes[d].Ne(zero), "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", n+1, n+2, sizesText(x.Sizes))
			}
			for i := range n {
				d := x.Dim() - 1 - i
				l, r := pad[2*i], pad[2*i+1]
				if reflect && (l.Ge(sizes[d]) || r.Ge(sizes[d])) {
					Fail("Argument #%d: Padding size should be less than the corresponding input dimension, but got: padding (%v, %v) at dimension %d of input %s", 4+2*i, l, r, d, sizesText(x.Sizes))
				}
				sizes[d] = sizes[d].Add(l).Add(r)
				Check(sizes[d].Ge(symbolic.N(1)), "input (size: %v) is too small. Calculated output size: %v", x.Sizes[d], sizes[d])
			}
			return []Meta{borderMeta(x, sizes)}
		},
		CPU: func(k *Kernel) { borderKernel(k, n, reflect) },
	}
}

// borderMeta: a batch of images keeps channels-last, anything else is contiguous.
func borderMeta(x *Value, sizes []symbolic.Int) Meta { return suggested(x, sizes) }

// borderKernel gathers along one padded dimension after the other.
func borderKernel(k *Kernel, n int, reflect bool) {
	x, pad := k.T(0), k.I64s(1)
	quiet := &Kernel{Args: k.Args, Pool: k.Pool}
	for i := range n {
		d := x.Dim() - 1 - i
		size := x.Sizes()[d]
		sizes := append([]int64(nil), x.Sizes()...)
		sizes[d] += pad[2*i] + pad[2*i+1]
		dst := k.Out[0]
		if i < n-1 {
			dst = tensor.New(x.DType(), sizes...)
		}
		places, offs := make([]int64, sizes[d]), make([]int64, sizes[d])
		for j := range places {
			places[j] = borderSource(int64(j)-pad[2*i], size, reflect) * x.Strides()[d]
			offs[j] = int64(j) * dst.Strides()[d]
		}
		if dst.Numel() > 0 {
			eachPlace(quiet, without(dst, d), without(x, d), offs, places, copyRow)
		}
		x = dst
	}
}

// borderSource is the place inside [0, size) whose element a place around it gets.
func borderSource(at, size int64, reflect bool) int64 {
	if reflect {
		if at < 0 {
			at = -at
		}
		if at >= size {
			at = 2*(size-1) - at
		}
	}
	return min(max(at, 0), size-1)
}

// circularPad joins the tensor with pieces of its other end, dimension by dimension.
func circularPad(b *Build, a *Args) []*Value {
	x, pad := a.Tensor(0), a.Ints(1)
	n := len(pad) / 2
	Check(len(pad) == 2*n && (x.Dim() == n+2 || x.Dim() == n+1), "Invalid padding size, expected %d but got %d", 2*(x.Dim()-2), len(pad))
	zero := symbolic.N(0)
	for i := n - 1; i >= 0; i-- {
		d := x.Dim() - 1 - i
		size := x.Sizes[d]
		l, r := pad[2*i], pad[2*i+1]
		Check(l.Le(size) && r.Le(size), "Padding value causes wrapping around more than once.")
		Check(l.Add(r).Add(size).Ge(zero), "Negative padding value is resulting in an empty dimension")
		parts := []*Value{b.Call("slice.Tensor", x, d, l.Neg().Max(zero), size.Add(r.Min(zero)))}
		if l.Gt(zero) {
			parts = append([]*Value{b.Call("slice.Tensor", x, d, size.Sub(l).Add(r.Min(zero)), size.Add(r.Min(zero)))}, parts...)
		}
		if r.Gt(zero) {
			start := l.Neg().Max(zero)
			parts = append(parts, b.Call("slice.Tensor", x, d, start, start.Add(r)))
		}
		x = b.Call("cat", parts, d)
	}
	return One(b.Call("contiguous", x)) // in PyTorch it is written into new memory
}

// pixelShuffle copies between image [..., C, H*r, W*r] and channels [..., C*r*r, H, W], to the image or back.
func pixelShuffle(k *Kernel, image, channels *tensor.Tensor, r int64, back bool) {
	n := image.Dim()
	if image.Numel() == 0 {
		return
	}
	lead := channels.Sizes()[: n-3 : n-3]
	c, h, w := image.Sizes()[n-3], channels.Sizes()[n-2], channels.Sizes()[n-1]
	sizes := append(lead, c, r, r, h, w)
	is, cs := image.Strides(), channels.Strides()
	im := image.WithView(sizes, append(is[:n-3:n-3], is[n-3], is[n-2], is[n-1], is[n-2]*r, is[n-1]*r), image.Offset())
	ch := channels.WithView(sizes, append(cs[:n-3:n-3], cs[n-3]*r*r, cs[n-3]*r, cs[n-3], cs[n-2], cs[n-1]), channels.Offset())
	if back {
		Copy(k.Pool, ch, im)
		return
	}
	Copy(k.Pool, im, ch)
}

func shuffleOp(schema string) Op {
	return Op{
		Schema: schema,
		Shape: func(a *Args) []Meta {
			x, g := a.Tensor(0), a.Int(1)
			Check(x.Dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes %s", sizesText(x.Sizes))
			Check(g.Gt(symbolic.N(0)), "Number of groups to divide channels in must be positive. Value of groups:%v", g)
			Check(x.Sizes[1].Mod(g).Eq(symbolic.N(0)), "Number of channels must be divisible by groups. Got %v channels and %v groups.", x.Sizes[1], g)
			return []Meta{suggested(x, x.Sizes)}
		},
		CPU: func(k *Kernel) {
			o, x, g := k.Out[0], k.T(0), k.I64(1)
			if o.Numel() == 0 {
				return
			}
			per := x.Sizes()[1] / g
			split := func(t *tensor.Tensor, outer, inner int64) *tensor.Tensor {
				st := t.Strides()
				sizes := append([]int64{t.Sizes()[0], per, g}, t.Sizes()[2:]...)
				return t.WithView(sizes, append([]int64{st[0], st[1] * outer, st[1] * inner}, st[2:]...), t.Offset())
			}
			Copy(k.Pool, split(o, g, 1), split(x, 1, per))
		},
	}
}

func padSequence(b *Build, a *Args) []*Value {
	xs := a.Tensors(0)
	Check(len(xs) > 0, "received an empty list of sequences")
	side := a.Str(3)
	Check(side == "left" || side == "right", "Expected padding_side to be one of left or right, but got %s.", side)
	longest := xs[0].Sizes[0]
	for _, x := range xs {
		longest = longest.Max(x.Sizes[0])
	}
	rows := make([]*Value, len(xs))
	for i, x := range xs {
		pad := make([]symbolic.Int, 2*x.Dim())
		at := len(pad) - 1
		if side == "left" {
			at--
		}
		pad[at] = longest.Sub(x.Sizes[0])
		rows[i] = b.Call("constant_pad_nd", x, pad, a.V[2])
	}
	out := b.Call("stack", rows, 0)
	if !a.Bool(1) {
		out = b.Call("contiguous", b.Call("transpose.int", out, 0, 1))
	}
	return One(out)
}
