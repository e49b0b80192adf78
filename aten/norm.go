package aten

import (
	"math"
	"math/cmplx"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// normOps are normalisations. Statistics are computed in float64, 16-bit floats otherwise in float32.
var normOps = []Op{
	{Schema: "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)", Tags: Core, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		n := layerDims(x, a.Ints(1))
		layerParam("weight", a.OptTensor(2), a.Ints(1))
		layerParam("bias", a.OptTensor(3), a.Ints(1))
		m := Contig(x.DType, x.Sizes...)
		stat := append([]symbolic.Int{}, x.Sizes[:x.Dim()-n]...)
		for range n {
			stat = append(stat, symbolic.N(1))
		}
		dt := x.DType
		if w := a.OptTensor(2); w != nil && w.DType == tensor.Float32 {
			dt = tensor.Float32
		}
		return []Meta{m, Contig(dt, stat...), Contig(dt, stat...)}
	}, CPU: func(k *Kernel) {
		n := k.T(0).Dim() - len(k.Ints(1))
		normKernel(k, n, k.OptT(2), k.OptT(3), k.Float(4), k.Out[1], k.Out[2])
	}},
	{Schema: "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.CallN("native_layer_norm", a.V[:5]...)[0])
	}},
	{Schema: "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", Shape: func(a *Args) []Meta {
		layerDims(a.Tensor(0), a.Ints(1))
		layerParam("weight", a.OptTensor(2), a.Ints(1))
		return []Meta{Contig(ResultType(a.Tensor(0), a.OptTensor(2)), a.Tensor(0).Sizes...)}
	}, CPU: rmsKernel},
	{Schema: "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)", Tags: Core, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		checkGroups(a, x)
		m := Contig(x.DType, x.Sizes...)
		if x.SuggestChannelsLast() {
			m.Strides = ChannelsLastStrides(x.Sizes)
		}
		stat := Contig(x.DType, a.Int(3), a.Int(6))
		return []Meta{m, stat, stat}
	}, CPU: groupKernel},
	{Schema: "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if x.Dim() < 2 {
			Fail("Expected at least 2 dimensions for input tensor but received %d", x.Dim())
		}
		g := a.I64(1)
		if g <= 0 || x.Sizes[1].Int64()%g != 0 {
			Fail("Expected number of channels in input to be divisible by num_groups, but got input of shape %v and num_groups=%d", x.Sizes, g)
		}
		hw := symbolic.Prod(x.Sizes[2:]...)
		return One(b.CallN("native_group_norm", x, a.V[2], a.V[3], x.Sizes[0], x.Sizes[1], hw, a.Int(1), a.Float(4))[0])
	}},
	{Schema: "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, input := a.Tensor(0), a.Bool(5)
		if !input && !(a.Has(3) && a.Has(4)) {
			Fail("Expected running_mean and running_var to be defined when use_input_stats is false")
		}
		if x.Dim() < 2 {
			Fail("Expected at least 2 dimensions for input tensor but received %d", x.Dim())
		}
		n, c := x.Sizes[0], x.Sizes[1]
		if input && !a.Has(3) && !x.DType.IsReduced() {
			return One(b.CallN("native_group_norm", x, a.V[1], a.V[2], n, c, symbolic.Prod(x.Sizes[2:]...), c, a.Float(7))[0])
		}
		var per [4]any // weight, bias, running_mean, running_var of each instance's channels
		for i := range per {
			if v := a.OptTensor(1 + i); v != nil {
				per[i] = b.Call("repeat", v, []symbolic.Int{n})
			}
		}
		flat := append([]symbolic.Int{symbolic.N(1), n.Mul(c)}, x.Sizes[2:]...)
		r := b.Call("batch_norm", b.Call("view", b.Call("contiguous", x), flat), per[0], per[1], per[2], per[3], input, a.V[6], a.V[7], a.V[8])
		for i := 2; i < 4 && input; i++ {
			if per[i] != nil {
				b.CallN("copy_", a.Tensor(1+i), b.Call("mean.dim", b.Call("view", per[i], []symbolic.Int{n, c}), []int{0}))
			}
		}
		return One(b.Call("view", r, x.Sizes))
	}},
	{Schema: "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)", Tags: Core, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		channelParams(a, 5)
		stat := Contig(statDType(x, a.V[1:5]), symbolic.N(0))
		return []Meta{batchMeta(x), stat, stat}
	}, CPU: func(k *Kernel) {
		mean, v := f64s(k, k.T(3)), f64s(k, k.T(4))
		inv := make([]float64, len(v))
		for i := range v {
			inv[i] = 1 / math.Sqrt(v[i]+k.Float(6))
		}
		affine(k, k.OptT(1), k.OptT(2), mean, inv)
	}},
	{Schema: "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", Tags: Core, Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		channelParams(a, 3)
		stat := Contig(statDType(x, a.V[1:3]), x.Sizes[1])
		return []Meta{batchMeta(x), stat, stat}
	}, CPU: func(k *Kernel) {
		mean, v, n := channelStats(k, k.T(0))
		v, _ = storedVariance(k, v, n)
		inv := make([]float64, len(v))
		for i := range v {
			inv[i] = 1 / math.Sqrt(v[i]+k.Float(5))
		}
		mean, inv = storeStats(k, mean, inv)
		affine(k, k.OptT(1), k.OptT(2), mean, inv)
	}},
	{Schema: "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		channelParams(a, 5)
		n := symbolic.N(0)
		if a.Bool(5) {
			n = x.Sizes[1]
		}
		stat := Contig(statDType(x, a.V[1:5]), n)
		return []Meta{batchMeta(x), stat, stat, LikeMeta(a.Tensor(3), a.Tensor(3).DType, PreserveFormat), LikeMeta(a.Tensor(4), a.Tensor(4).DType, PreserveFormat)}
	}, CPU: func(k *Kernel) {
		mean, v := f64s(k, k.T(3)), f64s(k, k.T(4))
		Copy(k.Pool, k.Out[3], k.T(3))
		Copy(k.Pool, k.Out[4], k.T(4))
		if k.Bool(5) {
			m, bv, n := channelStats(k, k.T(0))
			mom := k.Float(6)
			bv, unbiased := storedVariance(k, bv, n)
			nm, nv := make([]float64, len(m)), make([]float64, len(m))
			for i := range m {
				nm[i] = (1-mom)*mean[i] + mom*m[i]
				nv[i] = (1-mom)*v[i] + mom*unbiased[i]
			}
			storeF64(k, k.Out[3], nm)
			storeF64(k, k.Out[4], nv)
			mean, v = m, bv
		}
		inv := make([]float64, len(v))
		for i := range v {
			inv[i] = 1 / math.Sqrt(v[i]+k.Float(7))
		}
		if k.Bool(5) {
			mean, inv = storeStats(k, mean, inv)
		}
		affine(k, k.OptT(1), k.OptT(2), mean, inv)
	}},
	{Writes: []int{3, 4}, Schema: "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		switch {
		case x.empty():
			return One(b.Call("clone", x))
		case !a.Bool(5):
			return One(b.CallN("_native_batch_norm_legit_no_training", x, a.V[1], a.V[2], a.V[3], a.V[4], a.V[6], a.V[7])[0])
		case !a.Has(3):
			return One(b.CallN("_native_batch_norm_legit.no_stats", x, a.V[1], a.V[2], true, a.V[6], a.V[7])[0])
		}
		r := b.CallN("_native_batch_norm_legit_functional", x, a.V[1], a.V[2], a.V[3], a.V[4], true, a.V[6], a.V[7])
		b.CallN("copy_", a.Tensor(3), r[3])
		b.CallN("copy_", a.Tensor(4), r[4])
		return One(r[0])
	}},
	{Writes: []int{3, 4}, Schema: "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		switch {
		case !a.Bool(5):
			return b.CallN("_native_batch_norm_legit_no_training", x, a.V[1], a.V[2], a.V[3], a.V[4], a.V[6], a.V[7])
		case !a.Has(3):
			return b.CallN("_native_batch_norm_legit.no_stats", x, a.V[1], a.V[2], true, a.V[6], a.V[7])
		}
		r := b.CallN("_native_batch_norm_legit_functional", x, a.V[1], a.V[2], a.V[3], a.V[4], true, a.V[6], a.V[7])
		b.CallN("copy_", a.Tensor(3), r[3])
		b.CallN("copy_", a.Tensor(4), r[4])
		return r[:3]
	}},
	{Schema: "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		v, d := a.Tensor(0), a.I64(2)
		var dims []int64
		for i := range v.Dim() {
			if d == -1 || i != WrapDim(d, v.Dim()) {
				dims = append(dims, int64(i))
			}
		}
		n := b.Call("linalg_vector_norm", v, 2, dims, true)
		return One(b.Call("mul.Tensor", v, b.Call("div.Tensor", a.Tensor(1), n)))
	}},
}

// layerDims checks normalized_shape and gives its length.
func layerDims(x *Value, shape []symbolic.Int) int {
	n := len(shape)
	if n == 0 || x.Dim() < n || !SameSizes(x.Sizes[x.Dim()-n:], shape) {
		Fail("Given normalized_shape=%v, expected input with shape [*%v], but got input of size%v", shape, shape, x.Sizes)
	}
	return n
}

// layerParam checks a layer norm's weight or bias.
func layerParam(name string, v *Value, shape []symbolic.Int) {
	if v != nil && (v.Dim() != len(shape) || !SameSizes(v.Sizes, shape)) {
		Fail("Expected %s to be of same shape as normalized_shape, but got %s of shape %s and normalized_shape = %s", name, name, sizesText(v.Sizes), sizesText(shape))
	}
}

// checkGroups checks the arguments of native_group_norm.
func checkGroups(a *Args, x *Value) {
	n, c, hw, g := a.Int(3), a.Int(4), a.Int(5), a.I64(6)
	if g <= 0 || c.Int64()%g != 0 {
		Fail("Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%d", sizesText(x.Sizes), g)
	}
	for i, name := range [...]string{"weight", "bias"} {
		if v := a.OptTensor(1 + i); v != nil && (v.Dim() != 1 || !v.Sizes[0].Eq(c)) {
			Fail("Expected %s to be a vector of size equal to the number of channels in input, but got %s of shape %s and input of shape %s", name, name, sizesText(v.Sizes), sizesText(x.Sizes))
		}
	}
	if n.Int64() < 0 || c.Int64() < 0 || hw.Int64() < 0 || !x.Numel().Eq(n.Mul(c).Mul(hw)) || x.Dim() < 2 || !x.Sizes[0].Eq(n) || !x.Sizes[1].Eq(c) {
		Fail("Expected X.numel() == N * C * HxW to be true, but got false.")
	}
}

// channelParams checks that the parameters of a batch norm, arguments 1 to n-1, have one number a channel.
func channelParams(a *Args, n int) {
	x := a.Tensor(0)
	if x.Dim() < 2 {
		return // batchMeta refuses it
	}
	for i, name := range []string{"weight", "bias", "running_mean", "running_var"}[:n-1] {
		if v := a.OptTensor(1 + i); v != nil && (v.Dim() != 1 || !v.Sizes[0].Eq(x.Sizes[1])) {
			Fail("%s should contain %v elements not %v", name, x.Sizes[1], v.Numel())
		}
	}
}

func batchMeta(x *Value) Meta {
	if x.Dim() < 2 {
		Fail("Expected more than 1 dimension in the input of batch_norm, got %v", x.Sizes)
	}
	m := Contig(x.DType, x.Sizes...)
	if x.SuggestChannelsLast() {
		m.Strides = ChannelsLastStrides(x.Sizes)
	} else if x.IsDense() && !x.IsContiguous() {
		m.Strides = x.Strides
	}
	return m
}

func f64s(k *Kernel, t *tensor.Tensor) []float64 {
	if t == nil {
		return nil
	}
	return tensor.Contiguous[float64](k.as(t, tensor.Float64))
}

func storeF64(k *Kernel, out *tensor.Tensor, v []float64) {
	t, err := tensor.FromSlice(v, out.Sizes()...)
	if err != nil {
		Fail("%v", err)
	}
	Copy(k.Pool, out, t)
}

// vectorNorm is the p-norm of v.
func vectorNorm(v []float64, p float64) float64 {
	s := 0.0
	for _, x := range v {
		switch a := math.Abs(x); {
		case math.IsInf(p, 1):
			s = math.Max(s, a)
		case p == 2:
			s += a * a
		default:
			s += math.Pow(a, p)
		}
	}
	switch {
	case math.IsInf(p, 1):
		return s
	case p == 2:
		return math.Sqrt(s)
	}
	return math.Pow(s, 1/p)
}

// moments gives mean and biased variance.
func moments[T float32 | float64](x []T) (mean, v float64) {
	mean = sumFloats(x) / float64(len(x))
	for _, e := range x {
		d := float64(e) - mean
		v += d * d
	}
	return mean, v / float64(len(x))
}

// normKernel normalises over the dimensions from n on.
func normKernel(k *Kernel, n int, w, b *tensor.Tensor, eps float64, meanOut, rstdOut *tensor.Tensor) {
	x, out := k.T(0), k.Out[0]
	rows := int64(1)
	for _, s := range x.Sizes()[:n] {
		rows *= s
	}
	if out.Numel() == 0 {
		return
	}
	d := out.Numel() / rows
	mean, rstd := make([]float64, rows), make([]float64, rows)
	if out.DType() == tensor.Float64 {
		normRows(k, tensor.Contiguous[float64](k.contiguous(x)), tensor.Contiguous[float64](out), d, f64s(k, w), f64s(k, b), eps, mean, rstd)
	} else {
		dst := out
		if out.DType() != tensor.Float32 {
			dst = tensor.New(tensor.Float32, out.Sizes()...)
		}
		var wf, bf []float32
		if w != nil {
			wf = tensor.Contiguous[float32](k.as(w, tensor.Float32))
		}
		if b != nil {
			bf = tensor.Contiguous[float32](k.as(b, tensor.Float32))
		}
		normRows(k, tensor.Contiguous[float32](k.as(x, tensor.Float32)), tensor.Contiguous[float32](dst), d, wf, bf, eps, mean, rstd)
		if dst != out {
			Copy(k.Pool, out, dst)
		}
	}
	storeF64(k, meanOut, mean)
	storeF64(k, rstdOut, rstd)
}

func normRows[T float32 | float64](k *Kernel, x, out []T, d int64, w, b []T, eps float64, mean, rstd []float64) {
	if xf, ok := any(x).([]float32); ok {
		m, r := make([]float32, len(mean)), make([]float32, len(mean))
		cpu.LayerNormF32(k.Pool, any(out).([]float32), xf, any(w).([]float32), any(b).([]float32), len(mean), int(d), float32(eps), m, r)
		for i := range m {
			mean[i], rstd[i] = float64(m[i]), float64(r[i])
		}
		return
	}
	k.Pool.ParallelFor(len(mean), max(1, int(grain/d)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row, dst := x[int64(r)*d:int64(r+1)*d], out[int64(r)*d:int64(r+1)*d]
			m, v := moments(row)
			inv := 1 / math.Sqrt(v+eps)
			mean[r], rstd[r] = m, inv
			mt, it := T(m), T(inv)
			for i, e := range row {
				y := (e - mt) * it
				if w != nil {
					y *= w[i]
				}
				if b != nil {
					y += b[i]
				}
				dst[i] = y
			}
		}
	})
}

func rmsKernel(k *Kernel) {
	x, out, w := k.T(0), k.Out[0], k.OptT(2)
	if out.Numel() == 0 {
		return
	}
	d := int64(1)
	for _, s := range k.I64s(1) {
		d *= s
	}
	eps, ok := k.OptFloat(3)
	if !ok {
		eps = map[bool]float64{true: 2.220446049250313e-16, false: 1.1920928955078125e-07}[x.DType() == tensor.Float64]
	}
	if x.DType().IsComplex() {
		rmsComplex(k, int(d), eps)
		return
	}
	xs, ws := f64s(k, x), f64s(k, w)
	res := make([]float64, len(xs))
	for r := int64(0); r < int64(len(xs)); r += d {
		s := 0.0
		for _, v := range xs[r : r+d] {
			s += v * v
		}
		inv := 1 / math.Sqrt(s/float64(d)+eps)
		for i, v := range xs[r : r+d] {
			y := v * inv
			if ws != nil {
				y *= ws[i]
			}
			res[r+int64(i)] = y
		}
	}
	storeF64(k, out, res)
}

// rmsComplex divides lines of d elements by the complex root of their mean square, which takes no absolute values.
func rmsComplex(k *Kernel, d int, eps float64) {
	res := tensor.New(tensor.Complex128, k.Out[0].Sizes()...)
	Copy(k.Pool, res, k.T(0))
	v := tensor.Data[complex128](res)
	var w []complex128
	if t := k.OptT(2); t != nil {
		w = tensor.Contiguous[complex128](k.as(t, tensor.Complex128))
	}
	for ; len(v) > 0; v = v[d:] {
		s := 0i
		for _, z := range v[:d] {
			s += z * z
		}
		inv := 1 / cmplx.Sqrt(s/complex(float64(d), 0)+complex(eps, 0))
		for i := range v[:d] {
			v[i] *= inv
			if w != nil {
				v[i] *= w[i]
			}
		}
	}
	Copy(k.Pool, k.Out[0], res)
}

func groupKernel(k *Kernel) {
	x, out := k.T(0), k.Out[0]
	n, c, hw, g := k.I64(3), k.I64(4), k.I64(5), k.I64(6)
	if out.Numel() == 0 {
		return
	}
	if x.DType() == tensor.Float64 {
		groupKernel64(k, n, c, hw, g)
		return
	}
	weights := func(i int) []float32 {
		if t := k.OptT(i); t != nil {
			return tensor.Contiguous[float32](k.as(t, tensor.Float32))
		}
		return nil
	}
	w, b, eps := weights(1), weights(2), float32(k.Float(7))
	mean, rstd := k.room(1, tensor.Float32), k.room(2, tensor.Float32)
	m, r := tensor.Contiguous[float32](mean), tensor.Contiguous[float32](rstd)
	if channelsInside(x) && channelsInside(out) {
		cpu.GroupNormNHWCF32(k.Pool, tensor.Data[float32](out), tensor.Data[float32](x), w, b, int(n), int(c), int(hw), int(g), eps, m, r)
	} else {
		to := k.room(0, tensor.Float32)
		xs := tensor.Contiguous[float32](k.as(x, tensor.Float32))
		cpu.GroupNormF32(k.Pool, tensor.Contiguous[float32](to), xs, w, b, int(n), int(c), int(hw), int(g), eps, m, r)
		k.deliver(0, to)
	}
	k.deliver(1, mean)
	k.deliver(2, rstd)
}

func groupKernel64(k *Kernel, n, c, hw, g int64) {
	xs := f64s(k, k.T(0))
	w, b := f64s(k, k.OptT(1)), f64s(k, k.OptT(2))
	res, mean, rstd := make([]float64, len(xs)), make([]float64, n*g), make([]float64, n*g)
	size := c / g * hw
	for r := range n * g {
		row := xs[r*size : (r+1)*size]
		m, v := moments(row)
		inv := 1 / math.Sqrt(v+k.Float(7))
		mean[r], rstd[r] = m, inv
		for i := range row {
			ch := r%g*(c/g) + int64(i)/hw
			y := (row[i] - m) * inv
			if w != nil {
				y *= w[ch]
			}
			if b != nil {
				y += b[ch]
			}
			res[r*size+int64(i)] = y
		}
	}
	storeF64(k, k.Out[0], res)
	storeF64(k, k.Out[1], mean)
	storeF64(k, k.Out[2], rstd)
}

// channelStats gives mean and biased variance of each channel, and the number of elements of one.
func channelStats(k *Kernel, x *tensor.Tensor) (mean, v []float64, n float64) {
	xs := f64s(k, x)
	c := x.Sizes()[1]
	hw := int64(1)
	for _, s := range x.Sizes()[2:] {
		hw *= s
	}
	nb := x.Sizes()[0]
	mean, v, n = make([]float64, c), make([]float64, c), float64(nb*hw)
	each := func(ch int64, f func(x float64)) {
		for i := range nb {
			for _, e := range xs[(i*c+ch)*hw : (i*c+ch+1)*hw] {
				f(e)
			}
		}
	}
	for ch := range c {
		s := 0.0
		each(ch, func(x float64) { s += x })
		mean[ch] = s / n
		s = 0
		each(ch, func(x float64) { s += (x - mean[ch]) * (x - mean[ch]) })
		v[ch] = s / n
	}
	return mean, v, n
}

// storedVariance gives the biased and the unbiased variance of channels of n elements as PyTorch has them. Of a dense input with
// 16-bit statistics it keeps the sum of squares in 16 bits, and divides in them.
func storedVariance(k *Kernel, v []float64, n float64) (biased, unbiased []float64) {
	round := rounder[float64](tensor.Float64)
	if dt, x := k.Out[1].DType(), k.Tensor(0); dt.IsReduced() && (x.IsContiguous() || x.SuggestChannelsLast()) {
		round = rounder[float64](dt)
	}
	biased, unbiased = make([]float64, len(v)), make([]float64, len(v))
	for i := range v {
		sum := round(v[i] * n)
		biased[i], unbiased[i] = round(sum/round(n)), round(sum/round(n-1))
	}
	return biased, unbiased
}

// statDType is the dtype of a batch's statistics: that of the first parameter given, for 16-bit inputs.
func statDType(x *Value, params []any) tensor.DType {
	for _, p := range params {
		if v, _ := p.(*Value); v != nil && x.DType.IsReduced() {
			return v.DType
		}
	}
	return x.DType
}

// storeStats gives a batch's mean and inverse deviation as outputs 1 and 2, and as what normalizes the input: rounded to
// their dtype, because PyTorch reads them back.
func storeStats(k *Kernel, mean, inv []float64) (m, i []float64) {
	storeF64(k, k.Out[1], mean)
	storeF64(k, k.Out[2], inv)
	return f64s(k, k.Out[1]), f64s(k, k.Out[2])
}

// affine is Out[0] = (x - mean) * inv * w + b, channel by channel.
func affine(k *Kernel, w, b *tensor.Tensor, mean, inv []float64) {
	x, out := k.T(0), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	ws, bs := f64s(k, w), f64s(k, b)
	c := x.Sizes()[1]
	scale, shift := make([]float64, c), make([]float64, c)
	for i := range scale {
		scale[i] = inv[i]
		if ws != nil {
			scale[i] *= ws[i]
		}
		shift[i] = -mean[i] * scale[i]
		if bs != nil {
			shift[i] += bs[i]
		}
	}
	if out.DType() == tensor.Float64 {
		affineRows(k, tensor.Contiguous[float64](k.contiguous(x)), x, scale, shift)
		return
	}
	affineRows(k, tensor.Contiguous[float32](k.as(x, tensor.Float32)), x, scale, shift)
}

func affineRows[T float32 | float64](k *Kernel, xs []T, x *tensor.Tensor, scale, shift []float64) {
	out := k.Out[0]
	dt := tensor.Float32
	if out.DType() == tensor.Float64 {
		dt = tensor.Float64
	}
	dst := out
	if out.DType() != dt || !out.IsContiguous() {
		dst = tensor.New(dt, out.Sizes()...)
	}
	rd := tensor.Contiguous[T](dst)
	c := len(scale)
	hw := len(xs) / int(x.Sizes()[0]) / c
	k.Pool.ParallelFor(int(x.Sizes()[0])*c, max(1, grain/max(hw, 1)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			s, t := T(scale[r%c]), T(shift[r%c])
			d := rd[r*hw : (r+1)*hw]
			if f, ok := any(d).([]float32); ok {
				cpu.AffineF32(f, any(xs[r*hw:(r+1)*hw]).([]float32), float32(s), float32(t))
				continue
			}
			for i, v := range xs[r*hw : (r+1)*hw] {
				d[i] = v*s + t
			}
		}
	})
	if dst != out {
		Copy(k.Pool, out, dst)
	}
}
