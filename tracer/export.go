package tracer

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Option configures [Export].
type Option func(*exporter) error

// WithDynamic lets dimension dim of the named input be any size that d allows. Dimensions that share a Dim have equal sizes.
func WithDynamic(input string, dim int, d *Dim) Option {
	return func(e *exporter) error {
		e.dynamic = append(e.dynamic, dynamicDim{input, dim, d})
		return nil
	}
}

type dynamicDim struct {
	input string
	dim   int
	d     *Dim
}

// symbol is a Dim in one export.
type symbol struct {
	name    string
	d       *Dim
	example int64
}

type exporter struct {
	m       Module
	tree    *tree
	names   []string
	args    []*tensor.Tensor
	dynamic []dynamicDim
	symbols []symbol
	sizes   [][]symbolic.Int // of each input
	dims    []map[int]*symbol
}

// Export traces a model on example inputs and gives its program, of dialect TRAINING, as torch.export.export does: parameters and
// buffers are lifted, sizes are fixed unless [WithDynamic] frees them, control flow of Go code has vanished. The example inputs become
// part of the program.
func Export(m Module, args []*tensor.Tensor, opts ...Option) (*export.Program, error) {
	e := &exporter{m: m, args: args}
	for _, o := range opts {
		if err := o(e); err != nil {
			return nil, err
		}
	}
	if err := e.prepare(); err != nil {
		return nil, err
	}
	p, err := e.trace(nil)
	if err != nil || len(e.symbols) == 0 {
		return p, err
	}
	q, err := e.trace(e.otherHints())
	if err == nil && q.Graph() != nil && graphText(p) == graphText(q) {
		return p, nil
	}
	return nil, e.specialised(p, q, err)
}

// prepare checks the model and the specification.
func (e *exporter) prepare() (err error) {
	if e.m == nil {
		return &UserError{Kind: InvalidInput, Msg: "the model is nil"}
	}
	if e.tree, err = walk(e.m); err != nil {
		return err
	}
	named, ok := e.m.(Named)
	if !ok {
		return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("%T does not name its inputs: add a method InputNames() []string", e.m)}
	}
	if e.names = named.InputNames(); len(e.names) != len(e.args) {
		return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Forward takes the inputs %v, got %d examples", e.names, len(e.args))}
	}
	for i, a := range e.args {
		if a == nil {
			return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("the example for input %s is nil", e.names[i])}
		}
		e.sizes, e.dims = append(e.sizes, aten.Ints(a.Sizes()...)), append(e.dims, map[int]*symbol{})
	}
	for _, d := range e.dynamic {
		if err := e.free(d); err != nil {
			return err
		}
	}
	for i, dims := range e.dims {
		for k, s := range dims {
			e.sizes[i][k] = symbolic.FromExpr(symbolic.Symbol(s.name, true), s.example)
		}
	}
	return nil
}

// free makes one dimension symbolic.
func (e *exporter) free(d dynamicDim) error {
	for i, name := range e.names {
		if name != d.input {
			continue
		}
		k := d.dim
		if k < 0 {
			k += e.args[i].Dim()
		}
		if k < 0 || k >= e.args[i].Dim() {
			return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("dynamic_shapes['%s']: dimension %d is out of range for a tensor of %d dimensions", name, d.dim, e.args[i].Dim())}
		}
		size := e.args[i].Sizes()[k]
		lo, hi := d.d.Bounds()
		switch {
		case size < 2:
			return &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf("Constraints violated (%s)! You marked %s as dynamic but your code specialized it to be a constant (%d). If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.", d.d.name, d.d.name, size)}
		case size < lo || size > hi:
			return &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf("the example size %d of %s, dimension %d, lies outside of %v", size, name, k, d.d)}
		}
		s, err := e.symbol(d.d, size)
		if err != nil {
			return err
		}
		e.dims[i][k] = s
		return nil
	}
	return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("no input is called %q; Forward takes %v", d.input, e.names)}
}

func (e *exporter) symbol(d *Dim, size int64) (*symbol, error) {
	for i := range e.symbols {
		s := &e.symbols[i]
		if s.d.name != d.name {
			continue
		}
		if s.d.min != d.min || s.d.max != d.max {
			return nil, &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Found different definitions %v and %v for the same symbolic dimension %v!", s.d, d, d)}
		}
		if s.example != size {
			return nil, &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf("two dimensions are called %s, and the examples have sizes %d and %d", d.name, s.example, size)}
		}
		return s, nil
	}
	if cap(e.symbols) == 0 {
		e.symbols = make([]symbol, 0, len(e.dynamic)) // pointers into it stay
	}
	e.symbols = append(e.symbols, symbol{fmt.Sprintf("s%d", len(e.symbols)), d, size})
	return &e.symbols[len(e.symbols)-1], nil
}

// otherHints gives each symbol another size, equal to no other and within its bounds where they allow it.
func (e *exporter) otherHints() map[string]int64 {
	hints := map[string]int64{}
	next := int64(101)
	for _, s := range e.symbols {
		n := next
		if next += 6; n > s.d.max {
			if n = s.d.max; n == s.example {
				n--
			}
		}
		hints[s.name] = max(n, 2)
	}
	return hints
}

// trace records one run; hints replace the examples' sizes.
func (e *exporter) trace(hints map[string]int64) (*export.Program, error) {
	all := map[string]int64{}
	var ranges []export.Range
	for _, s := range e.symbols {
		all[s.name] = s.example
		if h, ok := hints[s.name]; ok {
			all[s.name] = h
		}
		r := export.Range{Expr: s.name}
		if lo := s.d.min; lo > math.MinInt64 {
			r.Min = &lo
		}
		if hi := s.d.max; hi != math.MaxInt64 {
			r.Max = &hi
		}
		ranges = append(ranges, r)
	}
	rec := passes.NewRecorder(all, nil)
	s := &session{build: rec.Build(), rec: rec, state: map[any]*Tensor{}, names: map[Module]string{}, calls: map[string]int{}}
	for _, c := range e.tree.modules {
		if reflect.TypeOf(c.Module).Comparable() {
			if _, twice := s.names[c.Module]; !twice {
				s.names[c.Module] = c.Name
			}
		}
	}
	parts := export.Parts{Signature: &export.GraphSignature{}, State: &export.OrderedMap[*tensor.Tensor]{}, Constants: &export.OrderedMap[any]{},
		RangeConstraints: ranges, Verifiers: []string{export.Training.Dialect}, RequiresGrad: map[string]bool{}, OpsetVersion: map[string]int{"aten": 10}}
	for _, name := range e.names {
		rec.Reserve(name)
	}
	e.lift(s, &parts)
	x := make([]*Tensor, len(e.args))
	for i, a := range e.args {
		sizes := make([]symbolic.Int, len(e.sizes[i]))
		for k := range sizes {
			sizes[k] = rec.Size(e.sizes[i][k])
		}
		x[i] = &Tensor{rec.Input(e.names[i], export.TensorMeta{DType: a.DType(), Sizes: sizes, Strides: strides(a, sizes), Device: cpu, Layout: aten.StridedLayout}), s}
		parts.Signature.Inputs = append(parts.Signature.Inputs, export.InputSpec{Kind: export.UserInput, Arg: export.TensorArg{Name: e.names[i]}})
	}
	outs, err := s.forward(e.m, x)
	if err != nil {
		return nil, err
	}
	e.finish(rec, &parts, outs)
	return export.New(parts)
}

var cpu = aten.Device{Type: "cpu", Index: -1}

// strides are those of the example where all sizes are fixed, else row-major ones over the symbols.
func strides(a *tensor.Tensor, sizes []symbolic.Int) []symbolic.Int {
	for _, n := range sizes {
		if !n.IsConst() {
			return aten.ContiguousStrides(sizes)
		}
	}
	return aten.Ints(a.Strides()...)
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9]`)

// lift makes inputs of parameters and buffers.
func (e *exporter) lift(s *session, parts *export.Parts) {
	for _, kind := range []export.InputKind{export.Parameter, export.Buffer} {
		for i := range e.tree.entries {
			en := &e.tree.entries[i]
			if (en.param != nil) != (kind == export.Parameter) {
				continue
			}
			key, prefix := any(en.param), "p_"
			spec := export.InputSpec{Kind: kind, Target: en.fqn}
			t, grad := en.tensor(), false
			if en.param == nil {
				key, prefix = en.buffer, "b_"
				persistent := en.buffer.Persistent
				spec.Persistent = &persistent
			} else {
				grad = en.param.RequiresGrad
				parts.RequiresGrad[en.fqn] = grad
			}
			if kind == export.Parameter || en.buffer.Persistent {
				parts.State.Set(en.fqn, t)
			} else {
				parts.Constants.Set(en.fqn, t)
			}
			if s.state[key] != nil { // a tied weight: one input under its first name
				parts.IsParameter = map[string]bool{en.fqn: true}
				continue
			}
			name := prefix + strings.ToLower(notInName.ReplaceAllString(en.fqn, "_"))
			s.rec.Reserve(name)
			m := aten.MetaOf(t)
			v := s.rec.Input(name, export.TensorMeta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides, Offset: m.Offset, RequiresGrad: grad, Device: cpu, Layout: aten.StridedLayout})
			s.state[key] = &Tensor{v, s}
			spec.Arg = export.TensorArg{Name: name}
			parts.Signature.Inputs = append(parts.Signature.Inputs, spec)
		}
	}
}

// finish fills in what comes after the nodes.
func (e *exporter) finish(rec *passes.Recorder, parts *export.Parts, outs []*Tensor) {
	values := make([]*aten.Value, len(outs))
	for i, t := range outs {
		values[i] = t.v
		parts.Signature.Outputs = append(parts.Signature.Outputs, export.OutputSpec{Kind: export.UserOutput, Arg: export.TensorArg{Name: rec.Node(t.v).Name}})
	}
	parts.Graph = rec.Finish(values)
	const leaf = `{"type": null, "context": null, "children_spec": []}`
	tuple := func(children []string) string {
		return `{"type": "builtins.tuple", "context": "null", "children_spec": [` + strings.Join(children, ", ") + `]}`
	}
	leaves := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = leaf
		}
		return out
	}
	out := leaf
	if len(outs) != 1 {
		out = tuple(leaves(len(outs)))
	}
	in := tuple([]string{tuple(leaves(len(e.args))), `{"type": "builtins.dict", "context": "[]", "children_spec": []}`})
	parts.ModuleCallGraph = []export.ModuleCallEntry{{Signature: &export.ModuleCallSignature{InSpec: "[1, " + in + "]", OutSpec: "[1, " + out + "]", ForwardArgNames: e.names}}}
	for _, c := range e.tree.modules[1:] {
		parts.ModuleCallGraph = append(parts.ModuleCallGraph, export.ModuleCallEntry{FQN: c.Name})
	}
	ex := &export.Example{}
	for _, a := range e.args {
		ex.Args = append(ex.Args, a)
	}
	parts.ExampleInputs = ex
}

// graphText is a graph without hints.
func graphText(p *export.Program) string {
	var b strings.Builder
	for _, n := range p.Graph().Nodes {
		fmt.Fprintf(&b, "%s %s", n.Name, n.Target)
		for _, a := range n.Args {
			fmt.Fprintf(&b, " %s=", a.Name)
			if names := usedNames(a.Value); names != "" {
				b.WriteString(names)
			} else {
				fmt.Fprintf(&b, "%v", a.Value)
			}
		}
		b.WriteByte('\n')
	}
	for _, v := range p.Graph().Values {
		if v.Tensor != nil {
			fmt.Fprintf(&b, "%s %v %v %v\n", v.Name, v.Tensor.DType, v.Tensor.Sizes, v.Tensor.Strides)
		}
	}
	return b.String()
}

func usedNames(a export.Argument) string {
	s := ""
	if list, ok := a.([]any); ok {
		for _, x := range list {
			if v, ok := x.(*export.Value); ok {
				s += v.Name + ","
			} else {
				s += fmt.Sprint(x) + ","
			}
		}
		return s
	}
	export.EachValue(a, func(v *export.Value) { s += v.Name + "," })
	return s
}

// specialised is the error for a model that does other things for other sizes.
func (e *exporter) specialised(p, q *export.Program, cause error) error {
	var names, fixes []string
	for _, s := range e.symbols {
		names, fixes = append(names, s.d.name), append(fixes, fmt.Sprintf("%s = %d", s.d.name, s.example))
	}
	what := "with other sizes the model makes other calls"
	if cause != nil {
		what = "with other sizes the model fails: " + cause.Error()
	} else if a, b := strings.Split(graphText(p), "\n"), strings.Split(graphText(q), "\n"); true {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				what += fmt.Sprintf(": %q became %q", a[i], b[i])
				break
			}
		}
	}
	return &UserError{Kind: ConstraintViolation, Err: cause, Msg: fmt.Sprintf("Constraints violated (%s)! %s\nSuggested fixes:\n  %s", strings.Join(names, ", "), what, strings.Join(fixes, "\n  "))}
}
