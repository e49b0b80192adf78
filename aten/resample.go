package aten

import (
	"math"
	"strings"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// resampleOps interpolate over one to three spatial dimensions.
var resampleOps = concat(
	upsample("upsample_nearest1d", 1, nearestTaps(0)), upsample("upsample_nearest2d", 2, nearestTaps(0)), upsample("upsample_nearest3d", 3, nearestTaps(0)),
	upsample("_upsample_nearest_exact1d", 1, nearestTaps(0.5)), upsample("_upsample_nearest_exact2d", 2, nearestTaps(0.5)), upsample("_upsample_nearest_exact3d", 3, nearestTaps(0.5)),
	upsample("upsample_linear1d", 1, linearTaps), upsample("upsample_bilinear2d", 2, linearTaps), upsample("upsample_trilinear3d", 3, linearTaps),
	upsample("upsample_bicubic2d", 2, cubicTaps),
)

// axis is one dimension of an interpolation. Positions and weights are computed in float32 if single, as PyTorch does for
// all dtypes but float64.
type axis struct {
	in, out int64
	scale   float64 // input positions an output position
	align   bool
	single  bool
	weight  func(float64) float64 // rounds to the type in which weights are kept
}

// r rounds to the type in which positions are computed.
func (x *axis) r(v float64) float64 {
	if x.single {
		return float64(float32(v))
	}
	return v
}

// taps gives the source positions and weights of one output position.
type taps func(i int64, x *axis) (at []int64, w []float64)

func nearestTaps(shift float64) taps {
	return func(i int64, x *axis) ([]int64, []float64) {
		s := int64(math.Floor(float64(float32(float64(i)+shift) * float32(x.scale))))
		return []int64{min(s, x.in-1)}, []float64{1}
	}
}

// source is the position of output i among the inputs, not below 0 unless free.
func (x *axis) source(i int64, free bool) float64 {
	if x.align {
		if x.out <= 1 {
			return 0
		}
		return x.r(x.r(float64(x.in-1)/float64(x.out-1)) * float64(i))
	}
	s := x.r(x.r(x.r(x.scale)*(float64(i)+0.5)) - 0.5)
	if s < 0 && !free {
		return 0
	}
	return s
}

func linearTaps(i int64, x *axis) ([]int64, []float64) {
	s := x.source(i, false)
	lo := min(int64(s), x.in-1)
	hi := min(lo+1, x.in-1)
	w := x.weight(math.Min(math.Max(x.r(s-float64(lo)), 0), 1))
	return []int64{lo, hi}, []float64{x.weight(x.r(1 - w)), w}
}

func cubicTaps(i int64, x *axis) ([]int64, []float64) {
	s := x.source(i, true)
	f := math.Floor(s)
	at := make([]int64, 4)
	for j := range at {
		at[j] = min(max(int64(f)+int64(j)-1, 0), x.in-1)
	}
	w := keys(x.r(s - f))
	for j, v := range w {
		w[j] = x.weight(v)
	}
	return at, w
}

// keys gives the four weights of the cubic convolution kernel (Keys 1981) with a = -0.75 at fraction t.
func keys(t float64) []float64 {
	const a = -0.75
	near := func(x float64) float64 { return ((a+2)*x-(a+3))*x*x + 1 }
	far := func(x float64) float64 { return ((a*x-5*a)*x+8*a)*x - 4*a }
	return []float64{far(t + 1), near(t), near(1 - t), far(2 - t)}
}

// upsample makes the plain and the .vec overload of one kind.
func upsample(name string, n int, f taps) []Op {
	nearest := strings.Contains(name, "nearest")
	tags := Tag(0)
	if name == "upsample_bilinear2d" || name == "upsample_nearest2d" {
		tags = Core
	}
	d := string(rune('0' + n))
	var scales string
	switch n {
	case 1:
		scales = "float? scales=None"
	case 2:
		scales = "float? scales_h=None, float? scales_w=None"
	default:
		scales = "float? scales_d=None, float? scales_h=None, float? scales_w=None"
	}
	alignParam, first := "bool align_corners, ", 3
	vecAlign, vecScale := "bool align_corners, ", 3
	if nearest {
		alignParam, first, vecAlign, vecScale = "", 2, "", 2
	}
	run := func(a *Args, size []int64, align bool, sc []float64) func(k *Kernel) {
		return func(k *Kernel) { resample(k, n, size, align, sc, f) }
	}
	plain := Op{
		Schema: name + "(Tensor self, SymInt[" + d + "] output_size, " + alignParam + scales + ") -> Tensor",
		Shape: func(a *Args) []Meta {
			return []Meta{resampleMeta(a.Tensor(0), n, a.Ints(1))}
		},
		CPU: func(k *Kernel) {
			sc := make([]float64, n)
			for i := range sc {
				if v, ok := k.OptFloat(first + i); ok && v > 0 {
					sc[i] = 1 / v
				}
			}
			run(k.Args, k.I64s(1), !nearest && k.Bool(2), sc)(k)
		},
	}
	vec := Op{
		Schema: name + ".vec(Tensor input, SymInt[]? output_size, " + vecAlign + "float[]? scale_factors) -> Tensor", Tags: tags,
		Shape: func(a *Args) []Meta {
			return []Meta{resampleMeta(a.Tensor(0), n, vecSize(a, n, vecScale))}
		},
		CPU: func(k *Kernel) {
			sc := make([]float64, n)
			for i, v := range k.Floats(vecScale) {
				sc[i] = 1 / v
			}
			run(k.Args, Int64s(vecSize(k.Args, n, vecScale)), !nearest && k.Bool(2), sc)(k)
		},
	}
	return []Op{plain, vec}
}

func vecSize(a *Args, n, scale int) []symbolic.Int {
	if a.Has(1) {
		if a.Has(scale) {
			Fail("Must specify exactly one of output_size and scale_factors")
		}
		return a.Ints(1)
	}
	sc := a.Floats(scale)
	if !a.Has(scale) {
		Fail("Must specify exactly one of output_size and scale_factors")
	}
	if len(sc) != n || a.Tensor(0).Dim() != n+2 {
		Fail("Expected static_cast<int64_t>(scale_factors->size()) == spatial_dimensions to be true, but got false.")
	}
	out := make([]symbolic.Int, n)
	for i := range out {
		out[i] = symbolic.N(int64(float64(a.Tensor(0).Sizes[2+i].Int64()) * sc[i]))
	}
	return out
}

func resampleMeta(x *Value, n int, size []symbolic.Int) Meta {
	if x.Dim() != n+2 || len(size) != n {
		Fail("It is expected input_size equals to %d, but got size %d", n+2, x.Dim())
	}
	sizes := append([]symbolic.Int{x.Sizes[0], x.Sizes[1]}, size...)
	for _, s := range sizes[1:] {
		if s.Int64() <= 0 {
			Fail("Input and output sizes should be greater than 0, but got input %v output %v", x.Sizes, sizes)
		}
	}
	m := Contig(x.DType, sizes...)
	if x.SuggestChannelsLast() {
		m.Strides = ChannelsLastStrides(sizes)
	}
	return m
}

// newAxis makes the axis that takes in positions to out, by the given scale unless that is 0, in float64.
func newAxis(in, out int64, scale float64, align bool) *axis {
	if scale <= 0 {
		scale = float64(in) / float64(out)
	}
	return &axis{in: in, out: out, scale: scale, align: align, weight: rounder[float64](tensor.Float64)}
}

// resample interpolates separably: the taps of each dimension are computed once.
func resample(k *Kernel, n int, size []int64, align bool, sc []float64, f taps) {
	x, out := k.T(0), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	if x.DType() == tensor.Uint8 {
		resampleBytes(k, n, size, align, sc, f)
		return
	}
	dt := tensor.Float32
	if x.DType() == tensor.Float64 {
		dt = tensor.Float64
	}
	// The dimensions in memory: [N, C, spatial...] or [N, spatial..., C].
	cur, at0, channels := k.as(x, dt), 2, false
	if x.Dim() == n+2 && channelsInside(x) && channelsInside(out) {
		cur, at0, channels = channelsLastView(x), 1, true
	}
	// PyTorch keeps the weights in the tensor's dtype, except in its kernels of images.
	weight := rounder[float64](x.DType())
	if strings.HasPrefix(k.Op.schema.Base, "upsample_bilinear2d") {
		weight = rounder[float64](tensor.Float64)
	}
	dst := out
	if channels {
		dst = channelsLastView(out)
	}
	var axes []*axis // by dimension, nil where nothing changes
	first := n       // of the dimensions that change
	for d := n - 1; d >= 0; d-- {
		ax := newAxis(cur.Sizes()[at0+d], size[d], sc[d], align)
		ax.single, ax.weight = dt == tensor.Float32, weight
		if ax.in == ax.out && ax.scale == 1 {
			ax = nil
		} else {
			first = d
		}
		axes = append([]*axis{ax}, axes...)
	}
	for d := n - 1; d >= first; d-- { // the order in which PyTorch sums
		ax := axes[d]
		if ax == nil {
			continue
		}
		sizes := append([]int64{}, cur.Sizes()...)
		sizes[at0+d] = ax.out
		next := dst
		if d > first || !dst.IsContiguous() || dst.DType() != dt {
			next = tensor.New(dt, sizes...)
		}
		inner := int64(1)
		for _, s := range sizes[at0+d+1:] {
			inner *= s
		}
		if dt == tensor.Float64 {
			resampleDim(k, tensor.Contiguous[float64](cur), tensor.Contiguous[float64](next), inner, ax, f, addTo64)
		} else {
			resampleDim(k, tensor.Contiguous[float32](cur), tensor.Contiguous[float32](next), inner, ax, f, addTo32)
		}
		cur = next
	}
	if cur != dst {
		Copy(k.Pool, dst, cur)
	}
}

// channelsLastView is t [N, C, spatial...] as [N, spatial..., C].
func channelsLastView(t *tensor.Tensor) *tensor.Tensor {
	turn := func(v []int64) []int64 { return append(append([]int64{v[0]}, v[2:]...), v[1]) }
	return t.WithView(turn(t.Sizes()), turn(t.Strides()), t.Offset())
}

// addTo64 is y = s*x, or y += s*x unless it is the first.
func addTo64(y, x []float64, s float64, first bool) {
	if first {
		clear(y)
	}
	for i, v := range x {
		y[i] += s * v
	}
}

func addTo32(y, x []float32, s float32, first bool) {
	if first {
		cpu.MulScalarF32(y, x, s)
	} else {
		cpu.AxpyF32(y, x, s)
	}
}

// resampleDim interpolates x [outer, in, inner] to y [outer, out, inner].
func resampleDim[T float32 | float64](k *Kernel, x, y []T, inner int64, ax *axis, f taps, add func(y, x []T, s T, first bool)) {
	in, out := ax.in, ax.out
	var at []int64 // the taps of output position i are those from begin[i] on
	var w []T
	begin := make([]int, 1, out+1)
	even := true
	for i := range out {
		from, weights := f(i, ax)
		at = append(at, from...)
		for _, v := range weights {
			w = append(w, T(v))
		}
		begin = append(begin, len(at))
		even = even && len(from) == begin[1]
	}
	outer := int64(len(y)) / (out * inner)
	k.Pool.ParallelFor(int(outer), max(1, int(grain/(out*inner))), func(lo, hi int) {
		for r := int64(lo); r < int64(hi); r++ {
			src, dst := x[r*in*inner:(r+1)*in*inner], y[r*out*inner:(r+1)*out*inner]
			if inner == 1 {
				resampleRow(dst, src, at, w, begin, even)
				continue
			}
			for i := range int(out) {
				d := dst[int64(i)*inner : int64(i+1)*inner]
				for t := begin[i]; t < begin[i+1]; t++ {
					row := src[at[t]*inner : (at[t]+1)*inner]
					if begin[i+1]-begin[i] == 1 && w[t] == 1 {
						copy(d, row)
						continue
					}
					add(d, row, w[t], t == begin[i])
				}
			}
		}
	})
}

// resampleRow is [resampleDim] for numbers side by side. even says that all positions have as many taps as the first.
func resampleRow[T float32 | float64](dst, src []T, at []int64, w []T, begin []int, even bool) {
	switch {
	case even && begin[1] == 1:
		for i := range dst {
			dst[i] = w[i] * src[at[i]]
		}
	case even && begin[1] == 2:
		for i := range dst {
			dst[i] = w[2*i]*src[at[2*i]] + w[2*i+1]*src[at[2*i+1]]
		}
	default:
		for i := range dst {
			s := T(0)
			for t := begin[i]; t < begin[i+1]; t++ {
				s += w[t] * src[at[t]]
			}
			dst[i] = s
		}
	}
}

// resampleBytes interpolates images of bytes as PyTorch does: dimension by dimension from the last, in integers with weights
// of at most 15 bits, rounding to a byte after each.
func resampleBytes(k *Kernel, n int, size []int64, align bool, sc []float64, f taps) {
	cur := k.contiguous(k.T(0))
	for d := n - 1; d >= 0; d-- {
		in, o := cur.Sizes()[2+d], size[d]
		ax := newAxis(in, o, sc[d], align)
		if in == o && ax.scale == 1 {
			continue
		}
		at, w := make([][]int64, o), make([][]float64, o)
		most := 0.0
		for i := range o {
			at[i], w[i] = f(i, ax)
			for _, v := range w[i] {
				most = math.Max(most, v)
			}
		}
		bits := 0
		for bits < 22 && int64(0.5+most*float64(int64(1)<<(bits+1))) < 1<<15 {
			bits++
		}
		sizes := append([]int64{}, cur.Sizes()...)
		sizes[2+d] = o
		next := tensor.New(tensor.Uint8, sizes...)
		inner := int64(1)
		for _, s := range sizes[3+d:] {
			inner *= s
		}
		bytesDim(tensor.Contiguous[uint8](cur), tensor.Contiguous[uint8](next), in, o, inner, at, w, bits)
		cur = next
	}
	Copy(k.Pool, k.Out[0], cur)
}

func bytesDim(x, y []uint8, in, out, inner int64, at [][]int64, w [][]float64, bits int) {
	unit := float64(int64(1) << bits)
	for r := range int64(len(y)) / (out * inner) {
		for i := range out {
			for j := range inner {
				sum := int64(1) << bits >> 1
				for t, s := range at[i] {
					c := int64(w[i][t]*unit + math.Copysign(0.5, w[i][t]))
					sum += c * int64(x[(r*in+s)*inner+j])
				}
				y[(r*out+i)*inner+j] = uint8(min(max(sum>>bits, 0), 255))
			}
		}
	}
}
