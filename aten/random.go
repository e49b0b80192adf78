package aten

import (
	"math"
	"math/bits"
	"sort"
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// randomOps draw from the generator, with the streams of PyTorch's CPU generator.
var randomOps = concatOps(
	factoryRandom("rand", "SymInt[] size", 0, tensor.Float32, func(k *Kernel) { fillUniform(k, 0, 1) }),
	factoryRandom("randn", "SymInt[] size", 0, tensor.Float32, func(k *Kernel) { fillNormal(k, 0, 1) }),
	likeRandom("rand_like", "", func(k *Kernel) { fillUniform(k, 0, 1) }),
	likeRandom("randn_like", "", func(k *Kernel) { fillNormal(k, 0, 1) }),
	randintOps(),
	randpermOps(),
	[]Op{
		sampler("uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			Check(k.Float(1) <= k.Float(2), "uniform_ expects to return a [from, to) range, but found from=%v > to=%v", k.Float(1), k.Float(2))
			fillUniform(k, k.Float(1), k.Float(2))
		}),
		sampler("normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			fillNormal(k, k.Float(1), k.Float(2))
		}),
		{
			Schema: "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
			Tags:   Random,
			Decomp: inPlace(nil),
			CPU:    func(k *Kernel) { fillNormal(k, k.Float(1), k.Float(2)) },
		},
		sampler("exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			l := k.Float(1)
			Check(l > 0, "exponential_ expects lambda > 0.0, but found lambda=%v", l)
			k.draw(func(g *Generator) float64 { return -math.Log1p(-g.Float64()) / l })
		}),
		sampler("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			p := k.Float(1)
			Check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=%v", p)
			k.draw(func(g *Generator) float64 { return math.Ceil(math.Log(g.Float64()) / math.Log1p(-p)) })
		}),
		sampler("cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			m, s := k.Float(1), k.Float(2)
			Check(s > 0, "cauchy_ expects sigma > 0.0, but found sigma=%v", s)
			k.draw(func(g *Generator) float64 { return m + s*math.Tan(math.Pi*(g.Float64()-0.5)) })
		}),
		sampler("log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			m, s := k.Float(1), k.Float(2)
			Check(s > 0, "log_normal_ expects std > 0.0, but found std=%v", s)
			k.draw(func(g *Generator) float64 { return math.Exp(g.Normal()*s + m) })
		}),
		sampler("random(Tensor self, *, Generator? generator=None) -> Tensor", func(k *Kernel) { fillRandom(k) }),
		sampler("random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor", func(k *Kernel) { fillRange(k, 0, k.I64(1)) }),
		sampler("random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor", func(k *Kernel) {
			if to, ok := k.OptInt(2); ok {
				fillRange(k, k.I64(1), to.Int64())
				return
			}
			fillFrom(k, k.I64(1))
		}),
		contiguousSampler("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", func(k *Kernel) { fillBernoulli(k, k.Float(1)) }),
		{
			Schema: "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
			Tags:   Random,
			Decomp: inPlace(nil),
			CPU:    func(k *Kernel) { fillBernoulli(k, k.Float(1)) },
		},
		contiguousSampler("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", func(k *Kernel) { bernoulliOf(k, k.T(0)) }),
		sampler("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", func(k *Kernel) { bernoulliOf(k, k.T(1)) }),
		{
			Schema: "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
			Tags:   Random,
			Shape:  func(a *Args) []Meta { return []Meta{fresh(a, 2, 4, tensor.Float32)} },
			CPU:    func(k *Kernel) { fillNormal(k, k.Float(0), k.Float(1)) },
		},
		normalOf("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor"),
		normalOf("normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor"),
		normalOf("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor"),
		{
			Schema: "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
			Tags:   Random,
			Shape:  shapeMultinomial,
			CPU:    multinomialKernel,
		},
	},
)

// rand is the generator; without one, a fresh generator with PyTorch's default seed.
func (k *Kernel) rand() *Generator {
	if k.Rand == nil {
		k.Rand = NewGenerator(67280421310721)
	}
	return k.Rand
}

// Float64 draws a uniform number in [0, 1) with 53 bits.
func (g *Generator) Float64() float64 { return float64(g.Uint64()&(1<<53-1)) / (1 << 53) }

// Float32 draws a uniform number in [0, 1) with 24 bits.
func (g *Generator) Float32() float32 { return float32(g.Uint32()&(1<<24-1)) / (1 << 24) }

// Normal draws a standard normal number by the Box-Muller transform, which makes two at a time.
func (g *Generator) Normal() float64 {
	if g.hasNormal {
		g.hasNormal = false
		return g.normal
	}
	u1, u2 := g.Float64(), g.Float64()
	r, theta := math.Sqrt(-2*math.Log1p(-u2)), 2*math.Pi*u1
	g.normal, g.hasNormal = r*math.Sin(theta), true
	return r * math.Cos(theta)
}

// draw fills Out[0], in the order of its memory, from a distribution.
func (k *Kernel) draw(f func(g *Generator) float64) {
	g := k.rand()
	v := make([]float64, k.Out[0].Numel())
	for i := range v {
		v[i] = f(g)
	}
	storeInOrder(k.Out[0], v)
}

func (k *Kernel) drawInts(f func(g *Generator) int64) {
	g := k.rand()
	v := make([]int64, k.Out[0].Numel())
	for i := range v {
		v[i] = f(g)
	}
	storeInOrder(k.Out[0], v)
}

// storeInOrder stores numbers in the order of the tensor's memory.
func storeInOrder[T int64 | float64](t *tensor.Tensor, v []T) {
	if len(v) == 0 {
		return
	}
	kind := KF64
	if _, ok := any(v).([]int64); ok {
		kind = KI64
	}
	it, p, dt := NewIter(t.Sizes(), t), base(t), t.DType()
	done := 0
	it.Rows(0, it.N, func(off []int64, n int64) {
		storeRow(unsafe.Add(p, off[0]*int64(dt.Size())), dt, it.Strides[0][0], unsafe.Pointer(&v[done]), kind, int(n))
		done += int(n)
	})
}

// uniformOf draws a uniform number with the bits that a dtype gets.
func uniformOf(dt tensor.DType) func(g *Generator) float64 {
	if dt == tensor.Float64 || dt == tensor.Complex128 {
		return (*Generator).Float64
	}
	return func(g *Generator) float64 { return float64(g.Float32()) }
}

func fillUniform(k *Kernel, from, to float64) {
	o, u := k.realOut()
	if !o.DType().IsFloat() {
		FailAs("NotImplementedError", "\"check_uniform_bounds\" not implemented for '%s'", o.DType().CPPName())
	}
	k2 := *k
	k2.Out = []*tensor.Tensor{o}
	if u == nil {
		u = uniformOf(o.DType())
	}
	dt := o.DType()
	draw := func(g *Generator) float64 { return math.FMA(u(g), to-from, from) }
	if dt != tensor.Float64 {
		low, span := float64(float32(from)), float64(float32(to)-float32(from))
		to = roundTo(dt, to)
		// A fused multiply-add of float32: the product is exact in float64.
		draw = func(g *Generator) float64 { return roundTo(dt, float64(float32(u(g)*span+low))) }
	}
	k2.draw(func(g *Generator) float64 {
		if v := draw(g); v != to {
			return v
		}
		return from // the range is open above
	})
	k.Rand = k2.Rand
}

// realOut sees a complex output as its real and imaginary parts.
func (k *Kernel) realOut() (*tensor.Tensor, func(g *Generator) float64) {
	o := k.Out[0]
	if !o.DType().IsComplex() {
		return o, nil
	}
	sizes := append(append([]int64(nil), o.Sizes()...), 2)
	strides := make([]int64, 0, len(sizes))
	for _, s := range o.Strides() {
		strides = append(strides, 2*s)
	}
	t, err := tensor.View(o.Storage(), o.DType().Real(), sizes, append(strides, 1), 2*o.Offset())
	if err != nil {
		Fail("%v", err)
	}
	return t, nil
}

// fillNormal draws as PyTorch does: blocks of 16 uniforms transformed together for 16 or more contiguous elements, pair by
// pair otherwise. A complex number has variance 1 in all, half in each part.
func fillNormal(k *Kernel, mean, std float64) {
	Check(std >= 0, "normal expects std >= 0.0, but found std %v", std)
	o, _ := k.realOut()
	if o != k.Out[0] {
		std *= math.Sqrt(0.5)
	}
	if !o.DType().IsFloat() {
		FailAs("NotImplementedError", "\"normal_kernel_cpu\" not implemented for '%s'", o.DType().CPPName())
	}
	g := k.rand()
	n := int(o.Numel())
	v := make([]float64, n)
	if n < 16 || !o.IsContiguous() {
		for i := range v {
			v[i] = g.Normal()*std + mean
		}
		storeInOrder(o, v)
		return
	}
	u := uniformOf(o.DType())
	draw := func(v []float64) {
		for i := range v {
			v[i] = u(g)
		}
	}
	wide := o.DType() == tensor.Float64
	if !o.DType().IsReduced() {
		draw(v)
	}
	for i := 0; i+16 <= n; i += 16 {
		if o.DType().IsReduced() { // these draw block by block, so nothing yet for an unfinished block
			draw(v[i : i+16])
		}
		normalBlock(v[i:i+16], mean, std, wide)
	}
	if n%16 != 0 {
		draw(v[n-16:])
		normalBlock(v[n-16:], mean, std, wide)
	}
	storeInOrder(o, v)
}

func normalBlock(v []float64, mean, std float64, wide bool) {
	for j := range 8 {
		u1, u2 := 1-v[j], v[j+8]
		r, theta := math.Sqrt(-2*math.Log(u1)), 2*math.Pi*u2
		if !wide {
			r, theta = float64(float32(r)), float64(2*float32(math.Pi)*float32(u2))
		}
		v[j], v[j+8] = r*math.Cos(theta)*std+mean, r*math.Sin(theta)*std+mean
	}
}

func fillBernoulli(k *Kernel, p float64) {
	Check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=%v", p)
	k.drawInts(func(g *Generator) int64 { return int64(b2u(g.Float64() < p)) })
}

func bernoulliOf(k *Kernel, p *tensor.Tensor) {
	probs := k.as(broadcastTo(p, k.Out[0].Sizes()), tensor.Float64)
	ps := tensor.Contiguous[float64](probs)
	v := make([]int64, len(ps))
	for i, u := range k.drawnLike(k.Out[0].Sizes(), k.Out[0].Strides(), uniformOf(p.DType())) {
		Check(ps[i] >= 0 && ps[i] <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
		v[i] = int64(b2u(u < ps[i]))
	}
	t, _ := tensor.FromSlice(v, int64(len(v)))
	if len(v) > 0 {
		Copy(k.Pool, k.Out[0], sameShape(t, k.Out[0]))
	}
}

// fillRandom draws integers from the whole range of the dtype, for floats from the range of exact integers.
func fillRandom(k *Kernel) {
	bits := map[tensor.DType]uint{tensor.Uint8: 8, tensor.Int8: 7, tensor.Int16: 15, tensor.Int32: 31, tensor.Bool: 1,
		tensor.Uint16: 16, tensor.Uint32: 32, tensor.Float16: 11, tensor.BFloat16: 8, tensor.Float32: 24, tensor.Float64: 53}
	dt := k.Out[0].DType()
	switch n := bits[dt]; {
	case dt == tensor.Int64 || dt == tensor.Uint64:
		k.drawInts(func(g *Generator) int64 { return int64(g.Uint64() & (1<<63 - 1)) })
	case dt == tensor.Float64:
		k.drawInts(func(g *Generator) int64 { return int64(g.Uint64() % (1<<53 + 1)) })
	case dt.IsFloat():
		k.drawInts(func(g *Generator) int64 { return int64(g.Uint32() % (1<<n + 1)) })
	default:
		k.drawInts(func(g *Generator) int64 { return int64(uint64(g.Uint32()) % (1 << n)) })
	}
}

// fillFrom draws integers from lo to the greatest that the dtype counts up to.
func fillFrom(k *Kernel, lo int64) {
	dt := k.Out[0].DType()
	hi := int64(1)
	if dt.IsFloat() {
		hi = 1 << digits(dt)
		lo = exactFrom(dt, lo)
		Check(lo < hi, "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from=%d > to_inc=%d", lo, hi)
	} else if dt != tensor.Bool {
		n := 8 * dt.Size()
		if !dt.IsUnsigned() {
			n--
		}
		hi = 1<<min(n, 63) - 1
	}
	if lo == math.MinInt64 {
		k.drawInts(func(g *Generator) int64 { return int64(g.Uint64()) })
		return
	}
	k.drawSpan(lo, uint64(hi)-uint64(lo)+1)
}

// fillRange draws integers from [lo, hi). A float takes only ends that it can hold.
func fillRange(k *Kernel, lo, hi int64) {
	Check(lo < hi, "random_ expects 'from' to be less than 'to', but got from=%d >= to=%d", lo, hi)
	if dt := k.Out[0].DType(); dt.IsFloat() {
		lo, hi = exactFrom(dt, lo), exactTo(dt, hi)
		Check(lo < hi, "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%d >= to=%d", lo, hi)
	}
	k.drawSpan(lo, uint64(hi)-uint64(lo))
}

// drawSpan draws integers from r numbers that start at lo.
func (k *Kernel) drawSpan(lo int64, r uint64) {
	if r >= 1<<28 {
		k.drawInts(func(g *Generator) int64 { return int64(g.Uint64()%r) + lo })
		return
	}
	k.drawInts(func(g *Generator) int64 { return int64(uint64(g.Uint32())%r) + lo })
}

// digits is the number of bits of a float's significand.
func digits(dt tensor.DType) int {
	switch dt {
	case tensor.BFloat16:
		return 8
	case tensor.Float16:
		return 11
	case tensor.Float32:
		return 24
	}
	return 53
}

// exactFrom raises the lower end of a range if the dtype would round the number after it below it.
func exactFrom(dt tensor.DType, lo int64) int64 {
	if next := int64(castTo(dt, float64(lo+1))); next < lo {
		return next + spacing(dt, lo+1)
	}
	return lo
}

// exactTo lowers the upper end of a range if the dtype would round the number before it up to it.
func exactTo(dt tensor.DType, hi int64) int64 {
	if last := int64(castTo(dt, float64(hi-1))); last >= hi {
		return last - spacing(dt, hi-1)
	}
	return hi
}

// spacing is the distance of floats around v.
func spacing(dt tensor.DType, v int64) int64 {
	return 1 << max(0, bits.Len64(uint64(max(v, -v)))-digits(dt))
}

func castTo(dt tensor.DType, v float64) float64 {
	if dt == tensor.Float64 {
		return v
	}
	return roundTo(dt, v)
}

// sampler is an operator that fills a tensor like its first argument.
func sampler(schema string, f func(k *Kernel)) Op {
	return Op{Schema: schema, Tags: Random, Shape: func(a *Args) []Meta { return []Meta{likeDense(a.Tensor(0))} }, CPU: f}
}

// contiguousSampler is a sampler whose result is contiguous whatever its argument is.
func contiguousSampler(schema string, f func(k *Kernel)) Op {
	op := sampler(schema, f)
	op.Shape = func(a *Args) []Meta { return []Meta{Contig(a.Tensor(0).DType, a.Tensor(0).Sizes...)} }
	return op
}

func factoryRandom(name, params string, size int, def tensor.DType, f func(k *Kernel)) []Op {
	return []Op{
		{
			Schema: name + "(" + params + ", " + factoryArgs, Tags: Random, CPU: f,
			Shape: func(a *Args) []Meta { return []Meta{fresh(a, size, size+1, def)} },
		},
		{
			Schema: name + ".generator(" + params + ", *, Generator? generator, " + factoryArgs[len("*, "):], Tags: Random, CPU: f,
			Shape: func(a *Args) []Meta { return []Meta{fresh(a, size, size+2, def)} },
		},
	}
}

func likeRandom(name, params string, f func(k *Kernel)) []Op {
	return []Op{
		{
			Schema: name + "(Tensor self, " + params + likeArgs, Tags: Random, CPU: f,
			Shape: func(a *Args) []Meta { return []Meta{likeMeta(a, a.Index("dtype"))} },
		},
		{
			Schema: name + ".generator(Tensor self, " + params + "*, Generator? generator, " + likeArgs[len("*, "):], Tags: Random, CPU: f,
			Shape: func(a *Args) []Meta { return []Meta{likeMeta(a, a.Index("dtype"))} },
		},
	}
}

func randintOps() []Op {
	const long = "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
	high := func(k *Kernel) { fillRange(k, 0, k.I64(0)) }
	both := func(k *Kernel) { fillRange(k, k.I64(0), k.I64(1)) }
	make1 := func(schema string, size int, f func(k *Kernel)) Op {
		return Op{Schema: schema, Tags: Random, CPU: f, Shape: func(a *Args) []Meta {
			return []Meta{fresh(a, size, a.Index("dtype"), tensor.Int64)}
		}}
	}
	like := func(schema string, f func(k *Kernel)) Op {
		return Op{Schema: schema, Tags: Random, CPU: f, Shape: func(a *Args) []Meta { return []Meta{likeMeta(a, a.Index("dtype"))} }}
	}
	likeRest := likeArgs[len("*, "):]
	likeHigh := func(k *Kernel) { fillRange(k, 0, k.I64(1)) }
	likeBoth := func(k *Kernel) { fillRange(k, k.I64(1), k.I64(2)) }
	likeTensor := func(k *Kernel) { fillRange(k, 0, itemOf(k.T(1)).Int64()) }
	return []Op{
		make1("randint(SymInt high, SymInt[] size, *, "+long, 1, high),
		make1("randint.generator(SymInt high, SymInt[] size, *, Generator? generator, "+long, 1, high),
		make1("randint.low(SymInt low, SymInt high, SymInt[] size, *, "+long, 2, both),
		make1("randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "+long, 2, both),
		like("randint_like(Tensor self, SymInt high, *, "+likeRest, likeHigh),
		like("randint_like.generator(Tensor self, SymInt high, *, Generator? generator, "+likeRest, likeHigh),
		like("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, "+likeRest, likeBoth),
		like("randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, "+likeRest, likeBoth),
		like("randint_like.Tensor(Tensor self, Tensor high, *, "+likeRest, likeTensor),
		like("randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, "+likeRest, likeTensor),
	}
}

func randpermOps() []Op {
	const long = "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
	shape := func(a *Args) []Meta {
		Check(a.I64(0) >= 0, "n must be non-negative, got%d", a.I64(0))
		return []Meta{Contig(a.DType(a.Index("dtype"), tensor.Int64), a.Int(0))}
	}
	cpu := func(k *Kernel) {
		g, n := k.rand(), int(k.Out[0].Numel())
		p := make([]int64, n)
		for i := range p {
			p[i] = int64(i)
		}
		for i := range max(n-1, 0) {
			j := i + int(g.Uint32()%uint32(n-i))
			p[i], p[j] = p[j], p[i]
		}
		storeInOrder(k.Out[0], p)
	}
	return []Op{
		{Schema: "randperm(SymInt n, *, " + long, Tags: Random, Shape: shape, CPU: cpu},
		{Schema: "randperm.generator(SymInt n, *, Generator? generator, " + long, Tags: Random, Shape: shape, CPU: cpu},
	}
}

// normalOf draws standard normal numbers and scales and shifts them by tensors.
func normalOf(schema string) Op {
	return Op{Schema: schema, Tags: Random, Decomp: func(b *Build, a *Args) []*Value {
		mean, std := a.OptTensor(0), a.OptTensor(1)
		like := mean
		if like == nil {
			like = std
		}
		sizes := BroadcastSizes(mean, std)
		z := b.Call("randn", sizes, Kw("dtype", like.DType))
		return One(b.Call("add.Tensor", b.Call("mul.Tensor", z, a.V[1]), a.V[0]))
	}}
}

func shapeMultinomial(a *Args) []Meta {
	x, n := a.Tensor(0), a.Int(1)
	Check(x.DType.IsFloat(), "multinomial only supports floating-point dtypes for input, got: %s", x.DType.CPPName())
	Check(x.Dim() == 1 || x.Dim() == 2, "prob_dist must be 1 or 2 dim")
	Check(n.Gt(symbolic.N(0)), "cannot sample n_sample <= 0 samples")
	Check(a.Bool(2) || n.Le(x.Size(-1)), "cannot sample n_sample > prob_dist.size(-1) samples without replacement")
	sizes := cloneInts(x.Sizes)
	sizes[len(sizes)-1] = n
	return []Meta{Contig(tensor.Int64, sizes...)}
}

// multinomialKernel draws the indices of the greatest p/e with exponential numbers e (without replacement, and for a single
// draw), or inverts the cumulative distribution.
func multinomialKernel(k *Kernel) {
	p, n := k.floats(k.T(0)), int(k.I64(1))
	dt := k.T(0).DType()
	cats := int(k.T(0).Sizes()[k.T(0).Dim()-1])
	rows := int(k.Out[0].Numel()) / n
	g := k.rand()
	out := make([]int64, 0, rows*n)
	for r := range rows {
		checkProbabilities(p[r*cats : (r+1)*cats])
	}
	if k.Bool(2) && n > 1 {
		for r := range rows {
			out = drawReplaced(out, p[r*cats:(r+1)*cats], n, g)
		}
		storeInOrder(k.Out[0], out)
		return
	}
	keys := make([]sortKey, rows*cats)
	like := likeDense(FromTensor(k.T(0)))
	for i, e := range k.drawnLike(k.T(0).Sizes(), Int64s(like.Strides), func(g *Generator) float64 { return -math.Log1p(-g.Float64()) }) {
		q := castTo(dt, p[i]/castTo(dt, e))
		keys[i] = sortKey{floatKey(math.Float64bits(q)), int64(i % cats)}
	}
	gt := less[sortKey](func(a, b sortKey) bool { return a.key > b.key })
	for r := range rows {
		lane := keys[r*cats : (r+1)*cats]
		if n*64 <= cats {
			partialSort(lane, n, gt)
		} else {
			nthElement(lane, n-1, gt)
			introSort(lane[:n-1], gt)
		}
		for _, e := range lane[:n] {
			out = append(out, e.idx)
		}
	}
	storeInOrder(k.Out[0], out)
}

// drawnLike draws a number for each element in the order of a tensor's memory, and gives them in the order of its elements.
func (k *Kernel) drawnLike(sizes, strides []int64, f func(g *Generator) float64) []float64 {
	placed := tensor.NewStrided(tensor.Float64, sizes, strides)
	g, v := k.rand(), make([]float64, placed.Numel())
	for i := range v {
		v[i] = f(g)
	}
	if placed.IsContiguous() {
		return v
	}
	storeInOrder(placed, v)
	return k.floats(placed)
}

func checkProbabilities(p []float64) {
	sum := 0.0
	for _, v := range p {
		Check(v >= 0 && !math.IsInf(v, 0), "probability tensor contains either `inf`, `nan` or element < 0")
		sum += v
	}
	Check(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)")
}

// drawReplaced appends n indices drawn independently with the probabilities p.
func drawReplaced(out []int64, p []float64, n int, g *Generator) []int64 {
	cum, sum := make([]float64, len(p)), 0.0
	for i, v := range p {
		sum += v
		cum[i] = sum
	}
	for i := range cum {
		cum[i] /= sum
	}
	cum[len(cum)-1] = 1
	for range n {
		u := g.Float64()
		out = append(out, int64(sort.Search(len(cum), func(i int) bool { return cum[i] >= u })))
	}
	return out
}
