package tracer

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// unbacked is what the run knows of numbers that come from data.
type unbacked struct {
	ints, floats int
	names        []string // in the order in which they appear
	hint         int64    // the next that comparisons see: a number that nothing equals by chance
	asserts      []*symbolic.Expr
	asked        []guard        // by the shape function under way, without an answer
	answers      map[int]bool   // what it is told, by the number of the question
	inside       bool           // a shape function is under way
	rows         map[memo]int64 // rows of what was counted before, by symbol number
}

// memo is a count of a tensor's elements that does not change until something is written.
type memo struct {
	what  string
	value *aten.Value
}

// newUnbacked makes an integer that data decides. A draft export knows its value in the example.
func (e *env) newUnbacked(r symbolic.Interval, value ...int64) symbolic.Int {
	name := fmt.Sprintf("u%d", e.unbacked.ints)
	e.unbacked.ints++
	e.unbacked.names = append(e.unbacked.names, name)
	e.add(&symbol{name: name, known: r, declared: r, integer: true, unbacked: true})
	if e.unbacked.hint < 100003 {
		e.unbacked.hint = 100003
	} else {
		e.unbacked.hint += 2
	}
	e.rec.SetHint(name, e.unbacked.hint)
	if len(value) > 0 {
		e.rec.SetHint(name, value[0])
	}
	return e.unbackedInt(name)
}

func (e *env) unbackedInt(name string) symbolic.Int {
	return e.rec.Size(symbolic.FromExpr(symbolic.Symbol(name, false), 0))
}

// newRows is an unbacked size; the same one while nobody writes to what was counted.
func (e *env) newRows(what string, of *aten.Value, max symbolic.Int) symbolic.Int {
	key := memo{what, of}
	if n, ok := e.unbacked.rows[key]; ok {
		return e.unbackedInt(fmt.Sprintf("u%d", n))
	}
	r := symbolic.Interval{Min: 0, Max: math.MaxInt64 - 1}
	if c, ok := max.Const(); ok {
		r.Max = c
	}
	n := int64(e.unbacked.ints)
	if what != "" {
		if e.unbacked.rows == nil {
			e.unbacked.rows = map[memo]int64{}
		}
		e.unbacked.rows[key] = n
	}
	return e.newUnbacked(r, e.counts(what, of)...)
}

// counts is how many there are in the example, of a draft export.
func (e *env) counts(what string, of *aten.Value) []int64 {
	switch d := e.draft; {
	case d == nil:
	case what == "nonzero":
		if t := d.of[of]; t != nil {
			return []int64{d.real.Call("nonzero", aten.FromTensor(t)).Size(0).Hint()}
		}
	case d.outs != nil && d.outs[0] != nil:
		return []int64{d.outs[0].Size(0).Hint()}
	}
	return nil
}

func (e *env) hasUnbacked(x *symbolic.Expr) bool {
	found := false
	x.Symbols(func(name string) { s := e.symbols[name]; found = found || s != nil && s.unbacked })
	return found
}

// unknown answers a question about data. A shape function goes on as if the answer were no, see [env.describe]; user code cannot.
func (e *env) unknown(op symbolic.Op, a, b *symbolic.Expr) bool {
	if e.draft != nil && !e.unbacked.inside {
		return e.draft.answer(e, op, a.Simplify(), b.Simplify())
	}
	if e.unbacked.inside {
		g := newGuard(op, a, b, true)
		i := len(e.unbacked.asked)
		e.unbacked.asked = append(e.unbacked.asked, g)
		return e.unbacked.answers[i]
	}
	a, b = a.Simplify(), b.Simplify()
	x := &symbolic.Expr{Op: op, Args: []*symbolic.Expr{a, b}}
	if a.Op == symbolic.OpInt && op != "Equality" { // code says u0 > 2
		x = &symbolic.Expr{Op: exchanged[op], Args: []*symbolic.Expr{b, a}}
	}
	panic(&DataDependentError{Expr: x.String(), Where: place()})
}

var exchanged = map[symbolic.Op]symbolic.Op{"LessThan": "GreaterThan", "StrictLessThan": "StrictGreaterThan"}

// describe runs a shape function. Questions about data are answered with no, as PyTorch's guard_or_false; if it then refuses its
// arguments, the answers that it needs become conditions that the program checks, as those of torch._check.
func (e *env) describe(op *aten.Op, a *aten.Args, ask func(a *aten.Args) ([]*aten.Value, error)) ([]*aten.Value, error) {
	if op.Mutates() { // what was counted may be another
		e.unbacked.rows = nil
	}
	outs, err := e.counted(op, a, ask)
	if outs == nil && err == nil {
		outs, err = e.try(a, ask)
	}
	if e.draft != nil {
		return e.draft.described(e, op, a, outs, err)
	}
	return outs, err
}

func (e *env) try(a *aten.Args, ask func(a *aten.Args) ([]*aten.Value, error)) ([]*aten.Value, error) {
	u := &e.unbacked
	attempt := func(answers map[int]bool) (outs []*aten.Value, asked []guard, err error) {
		u.inside, u.asked, u.answers = true, nil, answers
		defer func() { u.inside = false }()
		at := e.mark()
		if outs, err = ask(a); err != nil {
			e.reset(at)
		}
		return outs, u.asked, err
	}
	outs, asked, err := attempt(nil)
	var refusal *aten.Error
	if err == nil || len(asked) == 0 || !errors.As(err, &refusal) {
		return outs, err
	}
	answers := map[int]bool{}
	for range 4 {
		for _, i := range promising(asked, answers) {
			answers[i] = true
			next, more, failed := attempt(answers)
			if failed == nil {
				for k := range answers {
					if k < len(more) {
						e.assert(more[k])
					}
				}
				return next, nil
			}
			if len(more) > len(asked) { // it got further
				asked = more
				break
			}
			delete(answers, i)
		}
	}
	return nil, err
}

// promising orders questions: the last first, those about 0 and 1 after all others.
func promising(asked []guard, answers map[int]bool) []int {
	var first, second []int
	for i := range slices.Backward(asked) {
		switch b := asked[i].b; {
		case answers[i]:
		case asked[i].op == "Equality" && b.Op == symbolic.OpInt && (b.I == 0 || b.I == 1):
			second = append(second, i)
		default:
			first = append(first, i)
		}
	}
	return append(first, second...)
}

// assert makes the program check a condition, and takes it as true from now on.
func (e *env) assert(g guard) {
	x := canonical(&symbolic.Expr{Op: g.op, Args: []*symbolic.Expr{g.a, g.b}})
	e.learn(g)
	if !slices.ContainsFunc(e.unbacked.asserts, func(o *symbolic.Expr) bool { return same(o, x) }) {
		e.unbacked.asserts = append(e.unbacked.asserts, x)
	}
}

// canonical is a relation as PyTorch writes it: with < or <=, negative terms on the other side, in lowest terms.
func canonical(x *symbolic.Expr) *symbolic.Expr {
	switch x.Op {
	case "And", "Or", "Not":
		out := &symbolic.Expr{Op: x.Op}
		for _, a := range x.Args {
			out.Args = append(out.Args, canonical(a))
		}
		return out
	case "GreaterThan":
		return canonical(&symbolic.Expr{Op: "LessThan", Args: []*symbolic.Expr{x.Args[1], x.Args[0]}})
	case "StrictGreaterThan":
		return canonical(&symbolic.Expr{Op: "StrictLessThan", Args: []*symbolic.Expr{x.Args[1], x.Args[0]}})
	case "Equality", "Unequality", "LessThan", "StrictLessThan":
	default:
		return x
	}
	if hasFloat(x) {
		return x
	}
	d := minus(x.Args[1], x.Args[0])
	terms := []*symbolic.Expr{d}
	if d.Op == "Add" {
		terms = d.Args
	}
	k := int64(0)
	for _, t := range terms {
		c, _ := coefficient(t)
		k = gcd(k, c)
	}
	k = max(k, 1)
	left, right := []*symbolic.Expr{symbolic.Const(0)}, []*symbolic.Expr{symbolic.Const(0)}
	for _, t := range terms {
		c, rest := coefficient(t)
		if c < 0 {
			left = append(left, scaled(-c/k, rest))
		} else {
			right = append(right, scaled(c/k, rest))
		}
	}
	return &symbolic.Expr{Op: x.Op, Args: []*symbolic.Expr{sum(left...).Simplify(), sum(right...).Simplify()}}
}

func hasFloat(x *symbolic.Expr) bool {
	return x.Op == symbolic.OpFloat || x.Op == symbolic.OpSymbol && strings.HasPrefix(x.Name, "zuf") || slices.ContainsFunc(x.Args, hasFloat)
}

func coefficient(t *symbolic.Expr) (int64, *symbolic.Expr) {
	if t.Op == symbolic.OpInt {
		return t.I, symbolic.Const(1)
	}
	if t.Op == "Mul" && t.Args[0].Op == symbolic.OpInt {
		return t.Args[0].I, (&symbolic.Expr{Op: "Mul", Args: append([]*symbolic.Expr{symbolic.Const(1)}, t.Args[1:]...)}).Simplify()
	}
	return 1, t
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// counted describes what operators give whose sizes depend on data; nil for all others.
func (e *env) counted(op *aten.Op, a *aten.Args, ask func(a *aten.Args) ([]*aten.Value, error)) ([]*aten.Value, error) {
	value := func(dt tensor.DType, sizes ...symbolic.Int) *aten.Value {
		return &aten.Value{Meta: aten.Contig(dt, sizes...)}
	}
	x, _ := a.V[0].(*aten.Value)
	switch op.Name() {
	case "aten.nonzero.default", "aten.argwhere.default":
		return aten.One(value(tensor.Int64, e.newRows("nonzero", x, x.Numel()), symbolic.N(int64(x.Dim())))), nil
	case "aten.masked_select.default":
		mask := a.Tensor(1)
		if mask.DType != tensor.Bool {
			return nil, nil
		}
		both, err := e.try(&aten.Args{Op: op, V: a.V}, func(*aten.Args) (out []*aten.Value, err error) {
			defer func() {
				if r := recover(); r != nil {
					err = aten.RecoverError(op, r)
				}
			}()
			return aten.One(value(x.DType, aten.BroadcastSizes(x, mask)...)), nil
		})
		if err != nil {
			return nil, err
		}
		return aten.One(value(x.DType, e.newRows("", nil, both[0].Numel()))), nil
	case "aten.view.default", "aten.reshape.default":
		return e.viewed(a), nil
	case "aten.index.Tensor":
		return e.masked(op, a, ask)
	case "aten.repeat_interleave.Tensor":
		if a.V[1] == nil {
			return aten.One(value(x.DType, e.newUnbacked(symbolic.Interval{Min: 0, Max: math.MaxInt64}, e.counts("", nil)...))), nil
		}
	case "aten.repeat_interleave.self_Tensor":
		return e.repeated(a)
	case "aten.bincount.default":
		out := tensor.Int64
		if w := a.OptTensor(1); w != nil {
			out = tensor.Float64
			if w.DType == tensor.Float32 {
				out = tensor.Float32
			}
		}
		return aten.One(value(out, e.newUnbacked(symbolic.Interval{Min: 0, Max: math.MaxInt64}, e.counts("", nil)...))), nil
	case "torchvision.nms.default":
		return aten.One(value(tensor.Int64, e.newRows("", nil, x.Size(0)))), nil
	}
	if strings.HasPrefix(op.Name(), "aten._unique") || strings.HasPrefix(op.Name(), "aten.unique") {
		return e.distinct(op, a), nil
	}
	return nil, nil
}

// viewed describes the view of a contiguous tensor with as many elements, about which nothing needs to be asked.
func (e *env) viewed(a *aten.Args) []*aten.Value {
	x, sizes := a.Tensor(0), a.Ints(1)
	if !slices.ContainsFunc(x.Sizes, func(n symbolic.Int) bool { return !n.IsConst() && e.hasUnbacked(n.Expr()) }) {
		return nil
	}
	dense := aten.ContiguousStrides(x.Sizes)
	for d := range dense {
		if !same(e.reduce(dense[d].Expr()), e.reduce(x.Strides[d].Expr())) {
			return nil
		}
	}
	if !same(e.reduce(symbolic.Prod(sizes...).Expr()), e.reduce(x.Numel().Expr())) {
		return nil
	}
	return aten.One(&aten.Value{Meta: x.ViewMeta(sizes, aten.ContiguousStrides(sizes), x.Offset)})
}

// masked describes x[mask]: a mask stands for as many index tensors as it has dimensions.
func (e *env) masked(op *aten.Op, a *aten.Args, ask func(a *aten.Args) ([]*aten.Value, error)) ([]*aten.Value, error) {
	list := a.Tensors(1)
	if !slices.ContainsFunc(list, func(v *aten.Value) bool {
		return v != nil && (v.DType == tensor.Bool || v.DType == tensor.Uint8)
	}) {
		return nil, nil
	}
	var indices []*aten.Value
	for _, v := range list {
		if v == nil || v.DType != tensor.Bool && v.DType != tensor.Uint8 {
			indices = append(indices, v)
			continue
		}
		x := a.Tensor(0)
		for d := range v.Dim() {
			if at := len(indices); at < x.Dim() && v.Size(d).IsConst() && x.Size(at).IsConst() && v.Size(d).Ne(x.Size(at)) {
				return nil, nil // the operator says what is wrong
			}
			indices = append(indices, &aten.Value{Meta: aten.Contig(tensor.Int64, e.newRows("nonzero", v, v.Numel())), Ref: v.Ref})
		}
	}
	return e.try(&aten.Args{Op: op, V: []any{a.V[0], indices}}, ask)
}

// repeated describes repeat_interleave without a known size.
func (e *env) repeated(a *aten.Args) ([]*aten.Value, error) {
	x, size := a.Tensor(0), a.V[3]
	if size != nil {
		n := a.Int(3)
		return aten.One(repeatedTo(a, x, n)), nil
	}
	var value []int64
	if d := e.draft; d != nil && d.outs != nil {
		dim, _ := a.OptInt(2)
		value = []int64{d.outs[0].Size(aten.WrapDim(dim.Int64(), d.outs[0].Dim())).Hint()}
	}
	return aten.One(repeatedTo(a, x, e.newUnbacked(symbolic.Interval{Min: 0, Max: math.MaxInt64}, value...))), nil
}

func repeatedTo(a *aten.Args, x *aten.Value, n symbolic.Int) *aten.Value {
	dim, ok := a.OptInt(2)
	if !ok {
		return &aten.Value{Meta: aten.Contig(x.DType, n)}
	}
	sizes := slices.Clone(x.Sizes)
	sizes[aten.WrapDim(dim.Int64(), x.Dim())] = n
	return &aten.Value{Meta: aten.Contig(x.DType, sizes...)}
}

// distinct describes the unique family: elements, inverse, counts; those that are not asked for are empty.
func (e *env) distinct(op *aten.Op, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	arg := func(name string) bool { b, _ := a.V[max(0, a.Index(name))].(bool); return b }
	long := func(sizes ...symbolic.Int) *aten.Value { return &aten.Value{Meta: aten.Contig(tensor.Int64, sizes...)} }
	counts, inverse := long(symbolic.N(0)), long(symbolic.N(0))
	dim, along := int64(0), false
	if i := a.Index("dim"); i >= 0 && a.V[i] != nil {
		dim, along = int64(aten.WrapDim(a.I64(i), x.Dim())), true
	}
	most := x.Numel()
	what := op.Name()
	if along {
		most, what = x.Size(int(dim)), ""
	}
	var n symbolic.Int
	if d := e.draft; along && d != nil && d.outs != nil {
		n = e.newUnbacked(symbolic.Interval{Min: 0, Max: math.MaxInt64 - 1}, d.outs[0].Size(int(dim)).Hint())
	} else {
		n = e.newRows(what, x, most)
	}
	elements := &aten.Value{Meta: aten.Contig(x.DType, n)}
	if along {
		sizes := slices.Clone(x.Sizes)
		sizes[dim] = n
		elements = &aten.Value{Meta: aten.Contig(x.DType, sizes...)}
	}
	if arg("return_inverse") || along {
		inverse = long(x.Sizes...)
		if along {
			inverse = long(x.Size(int(dim)))
		}
	}
	if arg("return_counts") || along {
		counts = long(n)
	}
	out := []*aten.Value{elements, inverse, counts}
	return out[:len(op.Signature().Returns)]
}

// facts is what the run has learned.
type facts struct {
	guards              int
	replace, subst      map[string]*symbolic.Expr
	refined             map[string]symbolic.Interval
	zero, nonzero, more int
	residue             map[string]residue
}

func (e *env) mark() facts {
	return facts{len(e.guards), maps.Clone(e.replace), maps.Clone(e.subst), maps.Clone(e.refined), len(e.zero), len(e.nonzero), len(e.atLeast), maps.Clone(e.residue)}
}

// reset forgets what was learned since the mark.
func (e *env) reset(f facts) {
	e.guards, e.replace, e.subst, e.refined, e.residue = e.guards[:f.guards], f.replace, f.subst, f.refined, f.residue
	e.zero, e.nonzero, e.atLeast = e.zero[:f.zero], e.nonzero[:f.nonzero], e.atLeast[:f.more]
}
