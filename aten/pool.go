package aten

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// poolOps reduce windows of the spatial dimensions.
var poolOps = []Op{
	{
		Schema: "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeMaxPool(a, 2)[:1] },
		CPU:    func(k *Kernel) { maxPoolKernel(k, 2) },
	},
	{
		Schema: "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
		Shape:  func(a *Args) []Meta { return shapeMaxPool(a, 3)[:1] },
		CPU:    func(k *Kernel) { maxPoolKernel(k, 3) },
	},
	{
		Schema: "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeMaxPool(a, 2) },
		CPU:    func(k *Kernel) { maxPoolKernel(k, 2) },
	},
	{
		Schema: "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeMaxPool(a, 3) },
		CPU:    func(k *Kernel) { maxPoolKernel(k, 3) },
	},
	{
		Schema: "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return maxPool1d(b, a, "max_pool2d") },
	},
	{
		Schema: "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
		Decomp: func(b *Build, a *Args) []*Value { return maxPool1d(b, a, "max_pool2d_with_indices") },
	},
	{
		Schema: "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
		Tags:   Core,
		Decomp: func(b *Build, a *Args) []*Value {
			checkPoolRank("avg_pool1d", a.Tensor(0), 1)
			x := b.Call("unsqueeze", a.Tensor(0), -2)
			k, s, p := poolList(a, 1, 1, nil, "kernel_size"), poolList(a, 2, 1, a.Ints(1), "stride"), poolList(a, 3, 1, nil, "padding")
			y := b.Call("avg_pool2d", x, []int64{1, k[0]}, []int64{1, s[0]}, []int64{0, p[0]}, a.Bool(4), a.Bool(5))
			return One(b.Call("squeeze.dim", y, -2))
		},
	},
	{
		Schema: "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeAvgPool(a, 0, 2) },
		CPU:    func(k *Kernel) { avgPoolKernel(k, 2) },
	},
	{
		Schema: "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeAvgPool(a, 0, 3) },
		CPU:    func(k *Kernel) { avgPoolKernel(k, 3) },
	},
	{
		Schema: "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
		Tags:   Core,
		Decomp: func(b *Build, a *Args) []*Value {
			checkPoolRank("adaptive_avg_pool1d", a.Tensor(0), 1)
			Check(len(a.Ints(1)) == 1, "adaptive_avg_pool1d: output_size must be 1 dimensional")
			y := b.Call("adaptive_avg_pool2d", b.Call("unsqueeze", a.Tensor(0), -2), []symbolic.Int{symbolic.N(1), a.Ints(1)[0]})
			return One(b.Call("squeeze.dim", y, -2))
		},
	},
	adaptiveAvg(2), adaptiveAvg(3),
	{
		Schema: "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeAdaptive(a, "adaptive_avg_pool2d", 2)[:1] },
		CPU:    func(k *Kernel) { adaptiveAvgKernel(k, 2) },
	},
	{
		Schema: "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeAdaptive(a, "adaptive_avg_pool3d", 3)[:1] },
		CPU:    func(k *Kernel) { adaptiveAvgKernel(k, 3) },
	},
	{
		Schema: "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
		Decomp: func(b *Build, a *Args) []*Value {
			checkPoolRank("adaptive_max_pool1d", a.Tensor(0), 1)
			Check(len(a.Ints(1)) == 1, "adaptive_max_pool1d: output_size must be 1 dimensional")
			r := b.CallN("adaptive_max_pool2d", b.Call("unsqueeze", a.Tensor(0), -2), []symbolic.Int{symbolic.N(1), a.Ints(1)[0]})
			return []*Value{b.Call("squeeze.dim", r[0], -2), b.Call("squeeze.dim", r[1], -2)}
		},
	},
	{
		Schema: "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
		Shape:  func(a *Args) []Meta { return shapeAdaptive(a, "adaptive_max_pool2d", 2) },
		CPU:    func(k *Kernel) { maxKernel(k, newPoolPlan(2, k.T(0).Sizes(), k.Out[0].Sizes(), adaptiveWindows)) },
	},
	{
		Schema: "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
		Shape:  func(a *Args) []Meta { return shapeAdaptive(a, "adaptive_max_pool3d", 3) },
		CPU:    func(k *Kernel) { maxKernel(k, newPoolPlan(3, k.T(0).Sizes(), k.Out[0].Sizes(), adaptiveWindows)) },
	},
}

var ordinals = [...]string{"", "a single int", "two ints", "three ints"}

// poolList is an int[n] argument of a pooling; an empty one takes other's place.
func poolList(a *Args, i, n int, other []symbolic.Int, what string) []int64 {
	v := a.Ints(i)
	if len(v) == 0 && other != nil {
		v = other
	}
	if len(v) != 1 && len(v) != n {
		Fail("%s: %s must either be a single int, or a tuple of %s", a.Op.schema.Base, what, ordinals[n])
	}
	return Int64s(nth(v, n))
}

func checkPoolRank(name string, x *Value, n int) {
	if x.Dim() != n+1 && x.Dim() != n+2 {
		Fail("%s: Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got: %v", name, n+1, n+2, x.Sizes)
	}
	for d := 1; d < x.Dim(); d++ {
		if d == 1 && x.Dim() == n+2 && !x.Sizes[0].Eq(symbolic.N(0)) || d > 1 || x.Dim() == n+1 {
			if x.Sizes[d].Eq(symbolic.N(0)) {
				Fail("%s: Expected input's non-batch dimensions to have positive length, but input has a shape of %v and non-batch dimension %v has length zero!", name, x.Sizes, x.Sizes[d])
			}
		}
	}
}

// poolSize is the number of windows along a dimension.
func poolSize(in symbolic.Int, k, s, p, d int64, ceil bool) symbolic.Int {
	n := in.AddN(2*p - d*(k-1) - 1)
	if ceil {
		n = n.AddN(s - 1)
	}
	n = n.DivN(s).AddN(1)
	if ceil && n.SubN(1).MulN(s).Ge(in.AddN(p)) {
		n = n.SubN(1)
	}
	return n
}

// poolSizes checks a window's parameters and gives the output's sizes.
func poolSizes(name string, x *Value, n int, k, s, p, d []int64, ceil bool) []symbolic.Int {
	checkPoolRank(name, x, n)
	out := append([]symbolic.Int{}, x.Sizes[:x.Dim()-n]...)
	for i := range n {
		Check(k[i] > 0, "kernel size should be greater than zero, but got %s", namedSizes("k", k))
		Check(s[i] > 0, "stride should be greater than zero, but got %s", namedSizes("d", s))
		Check(d[i] > 0, "dilation should be greater than zero, but got %s", namedSizes("dilation", d))
		Check(p[i] >= 0, "pad must be non-negative, but got pad: %d", p[i])
		Check(p[i] <= ((k[i]-1)*d[i]+1)/2, "pad should be at most half of effective kernel size, but got pad=%d, kernel_size=%d and dilation=%d", p[i], k[i], d[i])
		out = append(out, poolSize(x.Sizes[x.Dim()-n+i], k[i], s[i], p[i], d[i], ceil))
	}
	for _, o := range out[len(out)-n:] {
		if o.Lt(symbolic.N(1)) {
			Fail("Given input size: (%s). Calculated output size: (%s). Output size is too small", timesSizes(x.Sizes[x.Dim()-n-1:]), timesSizes(out[len(out)-n-1:]))
		}
	}
	return out
}

// namedSizes prints "kH: 2 kW: 3".
func namedSizes(prefix string, v []int64) string {
	axes := "THW"[3-len(v):]
	var b strings.Builder
	for i, x := range v {
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "%s%c: %d", prefix, axes[i], x)
	}
	return b.String()
}

// timesSizes prints "3x4x5".
func timesSizes(v []symbolic.Int) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = x.String()
	}
	return strings.Join(s, "x")
}

func shapeMaxPool(a *Args, n int) []Meta {
	x, k := a.Tensor(0), poolList(a, 1, n, nil, "kernel_size")
	s, p, d := poolList(a, 2, n, a.Ints(1), "stride"), poolList(a, 3, n, nil, "padding"), poolList(a, 4, n, nil, "dilation")
	checkPoolDType(a.Op.schema.Base, x.DType)
	sizes := poolSizes(a.Op.schema.Base, x, n, k, s, p, d, a.Bool(5))
	checkChannels(a.Op.schema.Base, x, n)
	return []Meta{keepFormat(x, x.DType, sizes), keepFormat(x, tensor.Int64, sizes)}
}

// checkChannels refuses an input without batch that has no channels.
func checkChannels(name string, x *Value, n int) {
	if x.Dim() != n+1 || x.Sizes[0].Ne(symbolic.N(0)) {
		return
	}
	switch n {
	case 1:
		Fail("%s: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:%s", name, listText(x.Sizes))
	case 2:
		Fail("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:%s", listText(x.Sizes))
	}
	Fail("max_pool3d_with_indices_out_cpu_template(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with dimension 0 being empty", listText(x.Sizes))
}

func checkPoolDType(name string, dt tensor.DType) {
	if dt == tensor.Bool || dt.IsComplex() || dt.IsFloat8() || wideUnsigned(dt) {
		failKernel(name, dt)
	}
}

func maxPoolKernel(k *Kernel, n int) {
	ks := poolList(k.Args, 1, n, nil, "")
	w := slidingWindows(ks, poolList(k.Args, 2, n, k.Ints(1), ""), poolList(k.Args, 3, n, nil, ""), poolList(k.Args, 4, n, nil, ""))
	maxKernel(k, newPoolPlan(n, k.T(0).Sizes(), k.Out[0].Sizes(), w))
}

// PoolSpec brings a max_pool2d of [N, C, H, W] to the form of a convolution with C channels: its arguments and its result.
func PoolSpec(a *Args, out *Meta) cpu.Conv {
	x := a.Tensor(0)
	c := cpu.Conv{N: int(x.Sizes[0].Int64()), In: int(x.Sizes[1].Int64()), Out: int(x.Sizes[1].Int64()), Groups: 1}
	kernel, stride := poolList(a, 1, 2, nil, ""), poolList(a, 2, 2, a.Ints(1), "")
	pad, dilation := poolList(a, 3, 2, nil, ""), poolList(a, 4, 2, nil, "")
	c.Size, c.OutSize, c.Kernel, c.Stride, c.Dilation = [3]int{1}, [3]int{1}, [3]int{1}, [3]int{1}, [3]int{1}
	for i := range 2 {
		c.Size[1+i], c.OutSize[1+i] = int(x.Sizes[2+i].Int64()), int(out.Sizes[2+i].Int64())
		c.Kernel[1+i], c.Stride[1+i], c.Pad[1+i], c.Dilation[1+i] = int(kernel[i]), int(stride[i]), int(pad[i]), int(dilation[i])
	}
	return c
}

// maxKernel fills Out[0] with maxima and Out[1], if the operator has it, with their places.
func maxKernel(k *Kernel, p *poolPlan) {
	if k.Out[0].Numel() == 0 {
		return
	}
	dt := workType(k.Out[0].DType())
	x, out := k.as(k.T(0), dt), k.room(0, dt)
	var idx []int64
	var places *tensor.Tensor
	if len(k.Out) > 1 {
		places = k.room(1, tensor.Int64)
		idx = tensor.Contiguous[int64](places)
	}
	switch dt {
	case tensor.Float32:
		maxWindows(k, p, tensor.Contiguous[float32](x), tensor.Contiguous[float32](out), idx)
	case tensor.Float64:
		maxWindows(k, p, tensor.Contiguous[float64](x), tensor.Contiguous[float64](out), idx)
	default:
		maxWindows(k, p, tensor.Contiguous[int64](x), tensor.Contiguous[int64](out), idx)
	}
	k.deliver(0, out)
	if places != nil {
		k.deliver(1, places)
	}
}

func maxPool1d(b *Build, a *Args, op string) []*Value {
	checkPoolRank(a.Op.schema.Base, a.Tensor(0), 1)
	checkChannels(a.Op.schema.Base, a.Tensor(0), 1)
	k, s := poolList(a, 1, 1, nil, "kernel_size"), poolList(a, 2, 1, a.Ints(1), "stride")
	p, d := poolList(a, 3, 1, nil, "padding"), poolList(a, 4, 1, nil, "dilation")
	r := b.CallN(op, b.Call("unsqueeze", a.Tensor(0), -2), []int64{1, k[0]}, []int64{1, s[0]}, []int64{0, p[0]}, []int64{1, d[0]}, a.Bool(5))
	for i := range r {
		r[i] = b.Call("squeeze.dim", r[i], -2)
	}
	return r
}

// avgArgs are the window of an average pooling whose parameters begin at argument i.
func avgArgs(a *Args, i, n int) (k, s, p, d []int64) {
	k = poolList(a, i, n, nil, "kernel_size")
	return k, poolList(a, i+1, n, a.Ints(i), "stride"), poolList(a, i+2, n, nil, "padding"), []int64{1, 1, 1}[:n]
}

// divisorOf is the divisor_override of an average pooling, 0 for none.
func divisorOf(a *Args, i int) int64 {
	v, ok := a.OptInt(i)
	if !ok {
		return 0
	}
	Check(v.Int64() != 0, "divisor must be not zero")
	return v.Int64()
}

func shapeAvgPool(a *Args, xAt, n int) []Meta {
	x := a.Tensor(xAt)
	k, s, p, d := avgArgs(a, xAt+1, n)
	divisorOf(a, xAt+6)
	mustAvgPool(x.DType, n, "")
	sizes := poolSizes(a.Op.schema.Base, x, n, k, s, p, d, a.Bool(xAt+4))
	if n == 3 {
		return []Meta{Contig(x.DType, sizes...)}
	}
	return []Meta{keepFormat(x, x.DType, sizes)}
}

// mustAvgPool refuses the dtypes that an average pooling of n dimensions, or its gradient, has no kernel for.
func mustAvgPool(dt tensor.DType, n int, backward string) {
	name := fmt.Sprintf("avg_pool%dd%s", n, backward)
	if n == 3 {
		name += "_out_frame"
		if dt == tensor.Float16 || dt == tensor.BFloat16 {
			failKernel(name, dt)
		}
	}
	if dt != tensor.Int64 {
		mustFloat(name, dt)
	}
}

func avgPoolKernel(k *Kernel, n int) {
	ks, s, p, d := avgArgs(k.Args, 1, n)
	avgKernel(k, newPoolPlan(n, k.T(0).Sizes(), k.Out[0].Sizes(), slidingWindows(ks, s, p, d)), k.Bool(5), divisorOf(k.Args, 6))
}

func avgKernel(k *Kernel, p *poolPlan, full bool, divisor int64) {
	if k.Out[0].Numel() == 0 {
		return
	}
	dt := workType(k.Out[0].DType())
	x, out := k.as(k.T(0), dt), k.room(0, dt)
	switch dt {
	case tensor.Float32:
		avgWindows(k, p, tensor.Contiguous[float32](x), tensor.Contiguous[float32](out), full, divisor)
	case tensor.Float64:
		avgWindows(k, p, tensor.Contiguous[float64](x), tensor.Contiguous[float64](out), full, divisor)
	default:
		avgWindows(k, p, tensor.Contiguous[int64](x), tensor.Contiguous[int64](out), full, divisor)
	}
	k.deliver(0, out)
}

// adaptiveAvg is adaptive_avg_pool of rank n; a single window is a mean.
func adaptiveAvg(n int) Op {
	name := fmt.Sprintf("adaptive_avg_pool%dd", n)
	return Op{
		Schema: fmt.Sprintf("%s(Tensor self, SymInt[%d] output_size) -> Tensor", name, n),
		Decomp: func(b *Build, a *Args) []*Value {
			x, size := a.Tensor(0), a.Ints(1)
			Check(len(size) == n, "%s: output_size must be %d", name, n)
			single := true
			for _, s := range size {
				Check(s.Ge(symbolic.N(0)), "%s: elements of output_size must be greater than or equal to 0 but received {%s}", name, sizesText(size))
				single = single && s.Eq(symbolic.N(1))
			}
			if !single || x.DType.IsIntegral() {
				return One(b.Call("_"+name, x, size))
			}
			checkPoolRank(name, x, n)
			dims := []int{-1, -2, -3}[:n]
			y := b.Call("mean.dim", x, dims, true)
			if x.SuggestChannelsLast() && x.Dim() == n+2 {
				c := y.Sizes[1]
				st := []symbolic.Int{c, symbolic.N(1), c, c, c}[:n+2]
				y = b.Call("as_strided", y, y.Sizes, st)
			}
			return One(y)
		},
	}
}

func shapeAdaptive(a *Args, name string, n int) []Meta {
	x := a.Tensor(0)
	checkPoolRank(name, x, n)
	size := a.Ints(1)
	Check(len(size) == n, "%s(): internal error: output_size.size() must be %d", name, n)
	mustFloat(name, x.DType)
	sizes := append(append([]symbolic.Int{}, x.Sizes[:x.Dim()-n]...), size...)
	for _, s := range size {
		Check(s.Ge(symbolic.N(0)), "%s: elements of output_size must be greater than or equal to 0 but received {%s}", name, sizesText(size))
	}
	if n == 3 {
		return []Meta{Contig(x.DType, sizes...), Contig(tensor.Int64, sizes...)}
	}
	return []Meta{keepFormat(x, x.DType, sizes), keepFormat(x, tensor.Int64, sizes)}
}

func adaptiveAvgKernel(k *Kernel, n int) {
	if dt := k.Out[0].DType(); n == 3 && (dt == tensor.Float16 || dt == tensor.BFloat16) && k.Out[0].Numel() > 0 {
		adaptiveHalf3d(k, rounder[float32](dt))
		return
	}
	avgKernel(k, newPoolPlan(n, k.T(0).Sizes(), k.Out[0].Sizes(), adaptiveWindows), false, 0)
}

// adaptiveHalf3d averages 16-bit volumes; PyTorch's kernel keeps the sums and the quotients in the 16-bit type.
func adaptiveHalf3d(k *Kernel, round func(float32) float32) {
	p := newPoolPlan(3, k.T(0).Sizes(), k.Out[0].Sizes(), adaptiveWindows)
	x, outT := tensor.Contiguous[float32](k.as(k.T(0), tensor.Float32)), k.room(0, tensor.Float32)
	out := tensor.Contiguous[float32](outT)
	in, on := p.inSize(), p.outSize()
	k.Pool.ParallelFor(p.planes, p.grainOf(), func(lo, hi int) {
		p.each(lo, hi, func(plane, o int, z, y, c *span) {
			var sum float32
			for iz := z.lo; iz < z.hi; iz++ {
				for iy := y.lo; iy < y.hi; iy++ {
					row := x[plane*in+(iz*p.in[1]+iy)*p.in[2]:]
					for ix := c.lo; ix < c.hi; ix++ {
						sum = round(sum + row[ix])
					}
				}
			}
			for _, w := range []*span{z, y, c} {
				sum = round(sum / float32(w.full))
			}
			out[plane*on+o] = sum
		})
	})
	k.deliver(0, outT)
}
