package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// The values of an argument named "reduction".
const (
	reduceNone = iota
	reduceMean
	reduceSum
)

// lossOps compare predictions with targets. Those that work element by element are kernels with the reduction inside; the
// rest are formulas.
var lossOps = []Op{
	lossOp("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", nil, func(*Args) func(x, y float64) float64 {
		return func(x, y float64) float64 { return (x - y) * (x - y) }
	}),
	{Schema: "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return reduceLoss(b, b.Call("abs", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1))), a.I64(2))
	}},
	lossOp("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor", func(a *Args) {
		Check(a.Float(3) >= 0, "smooth_l1_loss does not support negative values for beta.")
	}, func(a *Args) func(x, y float64) float64 {
		beta := a.Float(3)
		return func(x, y float64) float64 {
			z := math.Abs(x - y)
			if z < beta {
				return 0.5 * z * z / beta
			}
			return z - 0.5*beta
		}
	}),
	lossOp("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor", func(a *Args) {
		Check(a.Float(3) > 0, "huber_loss does not support non-positive values for delta.")
	}, func(a *Args) func(x, y float64) float64 {
		delta := a.Float(3)
		return func(x, y float64) float64 {
			z := math.Abs(x - y)
			if z < delta {
				return 0.5 * z * z
			}
			return delta * (z - 0.5*delta)
		}
	}),
	{Schema: "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if dt := ResultType(x, y); !dt.IsFloat() {
			failDType(a.Op, dt)
		}
		// Step by step in the operands' type, as PyTorch does: the exponential overflows in it.
		e := b.Call("exp", b.Call("mul.Tensor", b.Call("neg", x), y))
		return reduceLoss(b, b.Call("log1p", e), a.I64(2))
	}},
	{Schema: "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", Shape: func(a *Args) []Meta {
		x, t := a.Tensor(0), a.Tensor(1)
		Check(x.DType.IsFloat(), "Found dtype %s but expected Float", x.DType.CPPName())
		Check(x.DType == t.DType, "Found dtype %s but expected %s", t.DType.CPPName(), x.DType.CPPName())
		return lossMeta(a, 3, x, t, a.OptTensor(2))
	}, CPU: crossEntropyBinary},
	{Schema: "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, t := a.Tensor(0), a.Tensor(1)
		ls := b.Call("log_sigmoid", x)
		if p := a.OptTensor(3); p != nil {
			ls = b.Call("mul.Tensor", ls, b.Call("add.Scalar", b.Call("mul.Tensor", b.Call("sub.Scalar", p, 1), t), 1))
		}
		loss := b.Call("sub.Tensor", b.Call("mul.Tensor", b.Call("rsub.Scalar", t, 1), x), ls)
		if w := a.OptTensor(2); w != nil {
			loss = b.Call("mul.Tensor", loss, w)
		}
		return reduceLoss(b, loss, a.I64(4))
	}},
	{Schema: "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, t := a.Tensor(0), a.Tensor(1)
		Check(!x.DType.IsIntegral() && !t.DType.IsIntegral(), "kl_div: Integral inputs not supported.")
		if a.Bool(3) {
			return reduceLoss(b, b.Call("mul.Tensor", b.Call("exp", t), b.Call("sub.Tensor", t, x)), a.I64(2))
		}
		return reduceLoss(b, b.Call("sub.Tensor", b.Call("xlogy.Tensor", t, t), b.Call("mul.Tensor", t, x)), a.I64(2))
	}},
	{Schema: "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor", Decomp: poissonLoss},
	{Schema: "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, t := a.Tensor(0), a.Tensor(1)
		zeros := b.Call("zeros_like", x)
		margin := b.Call("clamp_min", b.Call("rsub.Scalar", x, a.Float(2)), 0)
		loss := b.Call("add.Tensor", b.Call("where.self", b.Call("ne.Scalar", t, 1), margin, zeros), b.Call("where.self", b.Call("ne.Scalar", t, -1), x, zeros))
		return reduceLoss(b, loss, a.I64(3))
	}},
	{Schema: "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		d := b.Call("mul.Tensor", b.Call("neg", a.Tensor(2)), b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1)))
		return reduceLoss(b, b.Call("clamp_min", b.Call("add.Scalar", d, a.Float(3)), 0), a.I64(4))
	}},
	{Schema: "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor", Decomp: cosineEmbedding},
	{Schema: "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor", Decomp: tripletMargin},
	{Schema: "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor", Decomp: crossEntropy},
	{Schema: "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor", Decomp: firstOf("nll_loss_forward")},
	{Schema: "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor", Decomp: firstOf("nll_loss2d_forward")},
	{Schema: "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor", Decomp: nllAnyDim},
	{Schema: "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)", Shape: shapeNLL, CPU: nllKernel},
	{Schema: "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)", Shape: shapeNLL2d, CPU: nllKernel},
	{Schema: "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor", Shape: shapeMultiMargin, CPU: multiMargin},
	{Schema: "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", Decomp: firstOf("multilabel_margin_loss_forward")},
	{Schema: "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)", Shape: shapeMultiLabel, CPU: multiLabel},
}

// firstOf is the decomposition into the first result of an operator with the same arguments.
func firstOf(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return b.CallN(name, a.V...)[:1] }
}

// reduceLoss applies a reduction argument to the losses of all elements.
func reduceLoss(b *Build, v *Value, reduction int64) []*Value {
	switch reduction {
	case reduceMean:
		v = b.Call("mean", v)
	case reduceSum:
		v = b.Call("sum", v)
	}
	return One(v)
}

// lossMeta is the result of an element-by-element loss whose reduction is argument at.
func lossMeta(a *Args, at int, vals ...*Value) []Meta {
	m := PointwiseMeta(ResultType(vals...), vals...)
	if a.I64(at) != reduceNone {
		m = Contig(m.DType)
	}
	return []Meta{m}
}

// lossOp is a loss of two operands with the reduction as argument 2.
func lossOp(schema string, check func(a *Args), f func(a *Args) func(x, y float64) float64) Op {
	return Op{Schema: schema, Shape: func(a *Args) []Meta {
		if check != nil {
			check(a)
		}
		x, y := a.Tensor(0), a.Tensor(1)
		if dt := ResultType(x, y); !dt.IsFloat() {
			failDType(a.Op, dt)
		}
		return lossMeta(a, 2, x, y)
	}, CPU: func(k *Kernel) {
		fn := f(k.Args)
		k.reducedLoss(k.I64(2), func(k *Kernel) { k.Map2(floats(fn), k.T(0), k.T(1)) }, k.Tensor(0), k.Tensor(1))
	}}
}

// reducedLoss runs the element-by-element part into the output, or into scratch memory that it then folds.
func (k *Kernel) reducedLoss(reduction int64, elements func(k *Kernel), vals ...*Value) {
	if reduction == reduceNone {
		elements(k)
		return
	}
	all := *k
	dt := k.Out[0].DType()
	all.Out = []*tensor.Tensor{tensor.New(dt, Int64s(BroadcastSizes(vals...))...)}
	elements(&all)
	fold := *k
	fold.Args = &Args{Op: k.Op, V: []any{FromTensor(all.Out[0])}}
	sumDims(&fold, nil, reduction == reduceMean)
}

func crossEntropyBinary(k *Kernel) {
	unit := func(what string) func(v float64) float64 {
		return func(v float64) float64 {
			Check(v >= 0 && v <= 1, "all elements of %s should be between 0 and 1", what)
			return v
		}
	}
	input, target := unit("input"), unit("target")
	f := floats(func(x, t float64) float64 {
		x, t = input(x), target(t)
		return (t-1)*math.Max(math.Log1p(-x), -100) - t*math.Max(math.Log(x), -100)
	})
	vals := []*Value{k.Tensor(0), k.Tensor(1)}
	w := k.OptTensor(2)
	if w != nil {
		vals = append(vals, w)
	}
	k.reducedLoss(k.I64(3), func(k *Kernel) {
		k.Map2(f, k.T(0), k.T(1))
		if w != nil {
			k.Map2(mulFn, k.Out[0], w.T)
		}
	}, vals...)
}

func poissonLoss(b *Build, a *Args) []*Value {
	x, t := a.Tensor(0), a.Tensor(1)
	var loss *Value
	if a.Bool(2) {
		loss = b.Call("sub.Tensor", b.Call("exp", x), b.Call("mul.Tensor", t, x))
	} else {
		loss = b.Call("sub.Tensor", x, b.Call("mul.Tensor", t, b.Call("log", b.Call("add.Scalar", x, a.Float(4)))))
	}
	if a.Bool(3) { // Stirling's approximation of log(t!)
		st := b.Call("sub.Tensor", b.Call("mul.Tensor", t, b.Call("log", t)), t)
		st = b.Call("add.Tensor", st, b.Call("mul.Scalar", b.Call("log", b.Call("mul.Scalar", t, 2*math.Pi)), 0.5))
		loss = b.Call("add.Tensor", loss, b.Call("masked_fill.Scalar", st, b.Call("le.Scalar", t, 1), 0))
	}
	return reduceLoss(b, loss, a.I64(5))
}

func cosineEmbedding(b *Build, a *Args) []*Value {
	x, y, t := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	Check(t.Dim() <= 1, "0D or 1D target tensor expected, multi-target not supported")
	dim := 0
	if t.Dim() == 1 {
		Check(x.Dim() == 2 && y.Dim() == 2, "1D target tensor expects 2D input tensors, but found inputs with sizes %s and %s.", sizesText(x.Sizes), sizesText(y.Sizes))
		dim = 1
	} else {
		Check(x.Dim() == 1 && y.Dim() == 1, "0D target tensor expects 1D input tensors, but found inputs with sizes %s and %s.", sizesText(x.Sizes), sizesText(y.Sizes))
	}
	const eps = 1e-12
	total := func(u, v *Value) *Value { return b.Call("sum.dim_IntList", b.Call("mul.Tensor", u, v), []int{dim}) }
	mag := func(u *Value) *Value { return b.Call("add.Scalar", total(u, u), eps) }
	cos := b.Call("div.Tensor", total(x, y), b.Call("sqrt", b.Call("mul.Tensor", mag(x), mag(y))))
	zeros := b.Call("zeros_like", cos)
	pos := b.Call("rsub.Scalar", cos, 1)
	neg := b.Call("clamp_min", b.Call("sub.Scalar", cos, a.Float(3)), 0)
	loss := b.Call("add.Tensor", b.Call("where.self", b.Call("eq.Scalar", t, 1), pos, zeros), b.Call("where.self", b.Call("eq.Scalar", t, -1), neg, zeros))
	return reduceLoss(b, loss, a.I64(4))
}

func tripletMargin(b *Build, a *Args) []*Value {
	x, pos, neg := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	Check(x.Dim() == pos.Dim() && x.Dim() == neg.Dim(), "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor %dD, positive %dD, and negative %dD inputs",
		x.Dim(), pos.Dim(), neg.Dim())
	dist := func(u, v *Value) *Value { return b.Call("pairwise_distance", u, v, a.V[4], a.V[5]) }
	near, far := dist(x, pos), dist(x, neg)
	if a.Bool(6) {
		far = b.Call("minimum", far, dist(pos, neg))
	}
	loss := b.Call("clamp_min", b.Call("sub.Tensor", b.Call("add.Scalar", near, a.Float(3)), far), 0)
	return reduceLoss(b, loss, a.I64(7))
}

// crossEntropy takes class indices, or probabilities where the target has the input's shape.
func crossEntropy(b *Build, a *Args) []*Value {
	x, t, smooth := a.Tensor(0), a.Tensor(1), a.Float(5)
	Check(smooth >= 0 && smooth <= 1, "label_smoothing must be between 0.0 and 1.0. Got: %v", smooth)
	class := min(1, max(x.Dim()-1, 0))
	if SameSizes(x.Sizes, t.Sizes) {
		return crossEntropyProb(b, a, class)
	}
	logp := b.Call("log_softmax.int", x, class, x.DType)
	nll := b.Call("nll_loss_nd", logp, t, a.V[2], a.V[3], a.V[4])
	if smooth == 0 {
		return One(nll)
	}
	return One(smoothLabels(b, a, logp, nll, class))
}

// classWeight shapes the weights of the classes for multiplication with the input.
func classWeight(b *Build, w, x *Value, class int) *Value {
	if x.Dim() < 2 {
		return w
	}
	sizes := make([]symbolic.Int, x.Dim())
	for i := range sizes {
		sizes[i] = symbolic.N(1)
	}
	sizes[class] = w.Sizes[0]
	return b.Call("view", w, sizes)
}

func crossEntropyProb(b *Build, a *Args, class int) []*Value {
	x, t := a.Tensor(0), a.Tensor(1)
	Check(t.DType.IsFloat(), "Expected floating point type for target with class probabilities, got %s", t.DType.CPPName())
	Check(a.I64(4) < 0, "ignore_index is not supported for floating point target")
	w := a.OptTensor(2)
	n := x.Numel()
	if x.Dim() > 0 {
		n = x.Sizes[class]
	}
	Check(w == nil || w.Dim() == 1 && w.Numel().Eq(n), "cross_entropy: weight tensor should be defined either for all %v classes or no classes but got weight tensor of shape: %s", n, weightText(w))
	logp := b.Call("log_softmax.int", x, class, x.DType)
	if s := a.Float(5); s > 0 {
		t = b.Call("add.Scalar", b.Call("mul.Scalar", t, 1-s), s/float64(n.Int64()))
	}
	prod := b.Call("mul.Tensor", logp, t)
	if w != nil {
		prod = b.Call("mul.Tensor", prod, classWeight(b, w, x, class))
	}
	switch a.I64(3) {
	case reduceMean:
		count := x.Numel().FloorDiv(atLeast1(n))
		return One(b.Call("div.Scalar", b.Call("neg", b.Call("sum", prod)), count))
	case reduceSum:
		return One(b.Call("neg", b.Call("sum", prod)))
	}
	return One(b.Call("neg", b.Call("sum.dim_IntList", prod, []int{class})))
}

func weightText(w *Value) string {
	if w == nil {
		return ""
	}
	return sizesText(w.Sizes)
}

// smoothLabels mixes the loss of class indices with that of a uniform distribution.
func smoothLabels(b *Build, a *Args, logp, nll *Value, class int) *Value {
	t, w, smooth := a.Tensor(1), a.OptTensor(2), a.Float(5)
	weighted := logp
	if w != nil {
		weighted = b.Call("mul.Tensor", logp, classWeight(b, w, logp, class))
	}
	ignored := b.Call("eq.Scalar", t, a.Int(4))
	u := b.Call("masked_fill.Scalar", b.Call("neg", b.Call("sum.dim_IntList", weighted, []int{class})), ignored, 0)
	switch a.I64(3) {
	case reduceMean:
		var total *Value
		if w != nil {
			picked := b.Call("gather", w, 0, b.Call("flatten.using_ints", b.Call("masked_fill.Scalar", t, ignored, 0)))
			total = b.Call("sum", b.Call("masked_fill.Scalar", picked, b.Call("flatten.using_ints", ignored), 0))
		} else {
			total = b.Call("sum", b.Call("logical_not", ignored))
		}
		u = b.Call("div.Tensor", b.Call("sum", u), total)
	case reduceSum:
		u = b.Call("sum", u)
	}
	n := float64(logp.Sizes[class].Int64())
	return b.Call("add.Tensor", b.Call("mul.Scalar", nll, 1-smooth), b.Call("mul.Scalar", u, smooth/n))
}

// nllAnyDim brings [N, C, d1, ...] to the ranks that have kernels.
func nllAnyDim(b *Build, a *Args) []*Value {
	x, t := a.Tensor(0), a.Tensor(1)
	n := x.Dim()
	if n < 1 {
		FailValue("Expected 1 or more dimensions (got %d)", n)
	}
	if n != 1 && (t.Dim() == 0 || x.Sizes[0].Ne(t.Sizes[0])) {
		have := symbolic.N(0)
		if t.Dim() > 0 {
			have = t.Sizes[0]
		}
		FailValue("Expected input batch_size (%v) to match target batch_size (%v).", x.Sizes[0], have)
	}
	switch n {
	case 1, 2:
		return One(b.Call("nll_loss", a.V...))
	case 4:
		return One(b.Call("nll_loss2d", a.V...))
	}
	want := removeInt(x.Sizes, 1)
	Check(SameSizes(want, t.Sizes), "Expected target size %s, got %s", sizesText(want), sizesText(t.Sizes))
	inner := symbolic.Prod(x.Sizes[2:]...)
	one := symbolic.N(1)
	x4 := b.Call("reshape", x, []symbolic.Int{x.Sizes[0], x.Sizes[1], one, inner})
	t3 := b.Call("reshape", t, []symbolic.Int{x.Sizes[0], one, inner})
	out := b.Call("nll_loss2d", x4, t3, a.V[2], a.V[3], a.V[4])
	if a.I64(3) == reduceNone {
		out = b.Call("view", out, want)
	}
	return One(out)
}

func checkNLL(a *Args, classes symbolic.Int) {
	if t := a.Tensor(1).DType; t != tensor.Int64 && t != tensor.Uint8 {
		Fail("expected target dtype to be Long or Byte, but got %s", t.CPPName())
	}
	if !a.Tensor(0).DType.IsFloat() {
		FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", "nll_loss_out_frame", a.Tensor(0).DType.CPPName())
	}
	w := a.OptTensor(2)
	Check(w == nil || w.Dim() == 1 && w.Numel().Eq(classes), "weight tensor should be defined either for all %v classes or no classes but got weight tensor of shape: %s", classes, weightText(w))
}

func shapeNLL(a *Args) []Meta {
	x, t := a.Tensor(0), a.Tensor(1)
	Check(x.Dim() == 1 || x.Dim() == 2, "input tensor should be 1D or 2D")
	Check(t.Dim() <= 1, "0D or 1D target tensor expected, multi-target not supported")
	Check(x.Dim() == 1 && t.Dim() == 0 || t.Dim() == 1 && (x.Dim() == 1 && t.Sizes[0].Eq(symbolic.N(1)) || x.Sizes[0].Eq(t.Sizes[0])),
		"size mismatch (got input: %s, target: %s)", sizesText(x.Sizes), sizesText(t.Sizes))
	checkNLL(a, x.Sizes[x.Dim()-1])
	out := Contig(x.DType)
	if a.I64(3) == reduceNone && x.Dim() == 2 {
		out = Contig(x.DType, x.Sizes[0])
	}
	return []Meta{out, Contig(x.DType)}
}

func shapeNLL2d(a *Args) []Meta {
	x, t := a.Tensor(0), a.Tensor(1)
	Check(t.Dim() == 3, "only batches of spatial targets supported (3D tensors) but got targets of dimension: %d", t.Dim())
	Check(x.Dim() == 4, "only batches of spatial inputs supported (4D tensors), but got input of dimension: %d", x.Dim())
	Check(SameSizes(removeInt(x.Sizes, 1), t.Sizes), "size mismatch (got input: %s , target: %s", sizesText(x.Sizes), sizesText(t.Sizes))
	checkNLL(a, x.Sizes[1])
	out := Contig(x.DType)
	if a.I64(3) == reduceNone {
		out = Contig(x.DType, t.Sizes...)
	}
	return []Meta{out, Contig(x.DType)}
}

// nllKernel serves [C], [N, C] and [N, C, H, W]: it picks the target class's value at each place.
func nllKernel(k *Kernel) {
	x, w := k.contiguous(k.T(0)), k.OptT(2)
	classes, inner := x.Sizes()[0], int64(1)
	if x.Dim() > 1 {
		classes = x.Sizes()[1]
	}
	if x.Dim() == 4 {
		inner = x.Sizes()[2] * x.Sizes()[3]
	}
	ignore, reduction := k.I64(4), k.I64(3)
	target := tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	xs, ws := k.floats(x), []float64(nil)
	if w != nil {
		ws = k.floats(w)
	}
	losses := make([]float64, len(target))
	sum, total := 0.0, 0.0
	for i, t := range target {
		if t == ignore {
			continue
		}
		if t < 0 || t >= classes {
			FailIndex("Target %d is out of bounds.", t)
		}
		weight := 1.0
		if ws != nil {
			weight = ws[t]
		}
		n, at := int64(i)/inner, int64(i)%inner
		losses[i] = -weight * xs[(n*classes+t)*inner+at]
		sum += losses[i]
		total += weight
	}
	switch {
	case reduction == reduceNone && x.Dim() > 1:
		k.storeFloats(k.Out[0], losses)
		total = 0
	case reduction == reduceMean:
		k.storeFloats(k.Out[0], []float64{sum / total})
	default:
		k.storeFloats(k.Out[0], []float64{sum})
	}
	k.storeFloats(k.Out[1], []float64{total})
}

// lossRows gives the rows and columns of an input of at most two dimensions, one row if there are fewer.
func lossRows(x *Value) (rows, cols symbolic.Int) {
	one := symbolic.N(1)
	switch x.Dim() {
	case 0:
		return one, one
	case 1:
		return one, x.Sizes[0]
	}
	return x.Sizes[0], x.Sizes[1]
}

func shapeMultiMargin(a *Args) []Meta {
	x, t := a.Tensor(0), a.Tensor(1)
	p := a.Scalar(2).Float64()
	Check(p == 1 || p == 2, "only p == 1 and p == 2 supported")
	Check(x.Dim() <= 2, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s", sizesText(x.Sizes))
	rows, cols := lossRows(x)
	Check(t.Dim() <= 1 && t.Numel().Eq(rows), "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [%v], but got %s. Input has shape %s.", rows, sizesText(t.Sizes), sizesText(x.Sizes))
	Check(t.DType == tensor.Int64, "expected scalar type Long but found %s", t.DType.CPPName())
	w := a.OptTensor(4)
	Check(w == nil || w.Dim() <= 1 && w.Numel().Eq(cols), "inconsistent weight size, expected %v but got %s", cols, weightText(w))
	if a.I64(5) == reduceNone && t.Dim() > 0 {
		return []Meta{Contig(x.DType, rows)}
	}
	return []Meta{Contig(x.DType)}
}

func multiMargin(k *Kernel) {
	xs, target := k.floats(k.T(0)), tensor.Contiguous[int64](k.contiguous(k.T(1)))
	p, margin := k.Scalar(2).Float64(), k.Scalar(3).Float64()
	var ws []float64
	if w := k.OptT(4); w != nil {
		ws = k.floats(w)
	}
	losses := make([]float64, len(target))
	cols := len(xs) / max(len(target), 1)
	for i, t := range target {
		Check(t >= 0 && t < int64(cols), "target out of range")
		row := xs[i*cols : (i+1)*cols]
		for d, v := range row {
			z := margin - row[t] + v
			if d == int(t) || z <= 0 {
				continue
			}
			if p == 2 {
				z *= z
			}
			if ws != nil {
				z *= ws[t]
			}
			losses[i] += z
		}
		losses[i] /= float64(cols)
	}
	k.storeLosses(losses, k.I64(5))
}

// storeLosses stores the losses of the samples as the reduction says.
func (k *Kernel) storeLosses(losses []float64, reduction int64) {
	if reduction != reduceNone {
		s := sumFloats(losses)
		if reduction == reduceMean {
			s /= float64(len(losses))
		}
		losses = []float64{s}
	}
	k.storeFloats(k.Out[0], losses)
}

func shapeMultiLabel(a *Args) []Meta {
	x, t := a.Tensor(0), a.Tensor(1)
	Check(x.Dim() <= 2, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s", sizesText(x.Sizes))
	rows, cols := lossRows(x)
	ok := t.Numel().Eq(rows.Mul(cols)) && t.Dim() <= 2 && (x.Dim() < 2 && t.Dim() < 2 || SameSizes(x.Sizes, t.Sizes))
	Check(ok, "inconsistent target size: %s for input of size: %s", sizesText(t.Sizes), sizesText(x.Sizes))
	Check(t.DType == tensor.Int64, "expected scalar type Long but found %s", t.DType.CPPName())
	out := Contig(x.DType)
	if a.I64(2) == reduceNone && t.Dim() > 1 {
		out = Contig(x.DType, rows)
	}
	return []Meta{out, Contig(x.DType, t.Sizes...)}
}

// multiLabel: a row of the target lists classes up to the first -1.
func multiLabel(k *Kernel) {
	xs, target := k.floats(k.T(0)), tensor.Contiguous[int64](k.contiguous(k.T(1)))
	r, c := lossRows(k.Tensor(0))
	rows, cols := int(r.Int64()), int(c.Int64())
	for _, t := range target {
		Check(t >= -1 && t < int64(cols), "argument #2 'target' is out of range")
	}
	losses, is := make([]float64, rows), make([]float64, len(target))
	for i := range rows {
		row, mark := xs[i*cols:(i+1)*cols], is[i*cols:(i+1)*cols]
		list := target[i*cols : (i+1)*cols]
		for j, t := range list {
			if t < 0 {
				list = list[:j]
				break
			}
			mark[t] = 1
		}
		for _, t := range list {
			for d, v := range row {
				if z := 1 - (row[t] - v); mark[d] == 0 && z > 0 {
					losses[i] += z
				}
			}
		}
		losses[i] /= float64(cols)
	}
	k.storeLosses(losses, k.I64(2))
	k.storeFloats(k.Out[1], is)
}
