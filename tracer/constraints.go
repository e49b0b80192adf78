package tracer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"

	"github.com/pt2go/pt2/aten"
)

// prepare makes symbols of the specification.
func (e *exporter) prepare() (err error) {
	if m, ok := e.call.model.(DynamicSpecifier); ok {
		if e.shapes != nil {
			return invalid("the model has a DynamicSpec, and WithShapes is given; use one of them")
		}
		e.shapes = m.DynamicSpec()
	}
	shapes := e.shapes
	spec, unbacked := shapes.(ShapesSpec)
	if unbacked {
		shapes = nil
	}
	if e.specs, err = e.call.resolve(shapes); err != nil {
		return err
	}
	for _, d := range e.dynamic {
		if err := e.free(d); err != nil {
			return err
		}
	}
	e.sizes, e.values = make([][]symbolic.Int, len(e.call.leaves)), make([]symbolic.Int, len(e.call.leaves))
	for i, l := range e.call.leaves {
		t, ok := l.(*tensor.Tensor)
		if !ok {
			if err := e.integer(i); err != nil {
				return err
			}
			continue
		}
		e.sizes[i] = aten.Ints(t.Sizes()...)
		for k, d := range e.specs[i].dims {
			if d == nil {
				continue
			}
			if e.relax {
				d = relaxed(d)
			}
			place := fmt.Sprintf("%s.size()[%d]", e.call.places[i], k)
			if e.sizes[i][k], err = e.size(d, t.Sizes()[k], place); err != nil {
				return err
			}
		}
	}
	if unbacked {
		return e.specified(spec)
	}
	return nil
}

// relaxed is an automatic size in the place of one that promises more than the code keeps.
func relaxed(d DimSpec) DimSpec {
	switch d := d.(type) {
	case *Dim:
		return Auto.Range(d.min, d.max)
	case Hint:
		if d.kind == "DYNAMIC" {
			d.kind = "AUTO"
			return d
		}
	}
	return d
}

// free takes what [WithDynamic] says.
func (e *exporter) free(d dynamicDim) error {
	for i, name := range e.call.input {
		t, ok := e.call.leaves[i].(*tensor.Tensor)
		if name != d.input || !ok {
			continue
		}
		k := d.dim
		if k < 0 {
			k += t.Dim()
		}
		if k < 0 || k >= t.Dim() {
			return invalid("dynamic_shapes['%s']: dimension %d is out of range for a tensor of %d dimensions", name, d.dim, t.Dim())
		}
		e.specs[i].dims[k] = d.d
		return nil
	}
	return invalid("no input is called %q; Forward takes %v", d.input, e.call.params)
}

// integer is what becomes of leaf i, which is no tensor.
func (e *exporter) integer(i int) error {
	v, ok := e.call.leaves[i].(int64)
	e.values[i] = symbolic.N(v)
	h, hint := e.specs[i].value.(Hint)
	if !ok || !hint || h.kind == "STATIC" {
		return h.err
	}
	if h.err != nil {
		return h.err
	}
	s := &symbol{name: e.newName(), example: v, dynamic: h.kind == "DYNAMIC", integer: true, known: symbolic.Unbounded, declared: symbolic.Interval{Min: 0, Max: math.MaxInt64}}
	if v < 0 {
		s.declared.Min = math.MinInt64
	}
	if h.min != nil {
		s.declared = symbolic.Interval{Min: *h.min, Max: *h.max}
	}
	s.known = s.declared
	s.sources = []source{{e.call.places[i], 1, 0}}
	e.symbols = append(e.symbols, s)
	e.values[i] = symbolic.FromExpr(symbolic.Symbol(s.name, false), v)
	return nil
}

func (e *exporter) newName() string { return fmt.Sprintf("s%d", len(e.symbols)) }

// size is a dimension of an input.
func (e *exporter) size(d DimSpec, size int64, place string) (symbolic.Int, error) {
	fixed := symbolic.N(size)
	switch d := d.(type) {
	case Size:
		if int64(d) != size {
			return fixed, &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf("Static shape constraint of %d does not match input size of %d, for %s", int64(d), size, place)}
		}
		return fixed, nil
	case Hint:
		switch {
		case d.err != nil || d.kind == "STATIC":
			return fixed, d.err
		case size < 2 && d.kind == "AUTO":
			return fixed, nil
		case size < 2:
			return fixed, &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf("Constraints violated (%s)! \n  - You marked %s as dynamic but your code specialized it to be a constant (%d): sizes 0 and 1 are always fixed, so take a larger example; else use tracer.Static or tracer.Auto.", place, place, size)}
		}
		s := &symbol{name: e.newName(), example: size, dynamic: d.kind == "DYNAMIC", declared: symbolic.Interval{Min: 2, Max: math.MaxInt64}}
		if d.min != nil {
			s.declared = symbolic.Interval{Min: *d.min, Max: *d.max}
			if !s.declared.Has(size) {
				return fixed, &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf("the example's %s = %d lies outside of %v", place, size, d)}
			}
		}
		s.known = s.declared.Intersect(symbolic.Interval{Min: 2, Max: math.MaxInt64})
		s.sources = []source{{place, 1, 0}}
		e.symbols = append(e.symbols, s)
		return symbolic.FromExpr(symbolic.Symbol(s.name, true), size), nil
	case *Dim:
		return e.named(d, size, place)
	}
	return fixed, nil
}

// named is a dimension that a [Dim] stands for.
func (e *exporter) named(d *Dim, size int64, place string) (symbolic.Int, error) {
	fixed := symbolic.N(size)
	if d.err != nil {
		return fixed, d.err
	}
	violation := func(format string, args ...any) error {
		return &UserError{Kind: ConstraintViolation, Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case size < 2:
		return fixed, violation("Constraints violated (%s)! You marked %s as dynamic but your code specialized it to be a constant (%d): sizes 0 and 1 are always fixed, so take a larger example.\nSuggested fixes:\n  %s = %d", d.name, d.name, size, d.name, size)
	case size < d.min || size > d.max:
		return fixed, violation("the example's %s = %d lies outside of %v", place, size, d)
	case (size-d.b)%d.a != 0:
		return fixed, violation("the example's %s = %d cannot be %s", place, size, d.name)
	}
	root, value := d.top(), (size-d.b)/d.a
	var s *symbol
	for _, o := range e.symbols {
		if o.dim != nil && o.dim.name == root.name {
			s = o
		}
	}
	switch {
	case s == nil:
		s = &symbol{name: e.newName(), example: value, dim: root, declared: symbolic.Interval{Min: root.min, Max: root.max}}
		s.known = s.declared.Intersect(symbolic.Interval{Min: 2, Max: math.MaxInt64})
		if root != d && value < 2 { // a root that is no size itself
			s.known = s.declared
		}
		e.symbols = append(e.symbols, s)
	case s.dim.min != root.min || s.dim.max != root.max:
		return fixed, invalid("Found different definitions %v and %v for the same symbolic dimension %v!", s.dim, root, root)
	case s.example != value:
		first := s.sources[0]
		return fixed, violation("two dimensions are called %s, and the examples have sizes %d and %d: %s and %s", root.name, first.a*s.example+first.b, size, first.text, place)
	}
	s.sources = append(s.sources, source{place, d.a, d.b})
	x := sum(scaled(d.a, symbolic.Symbol(s.name, true)), symbolic.Const(d.b)).Simplify()
	return symbolic.FromExpr(x, size), nil
}

// settle looks at what a trace assumed. Again is true where hints turned out to be other than free: the trace must be made anew.
func (e *exporter) settle(env *env) (again bool, err error) {
	v := &violations{env: env}
	for _, name := range env.order {
		s := env.symbols[name]
		x, tied := env.replace[name]
		if !tied {
			continue
		}
		c, constant := constantOf(x)
		switch {
		case s.dim != nil && constant:
			v.constant(s, c)
		case s.dim != nil:
			v.related(s, x)
		case s.dynamic && constant:
			v.constant(s, c)
		default:
			e.replaceSymbol(s, x)
			again = true
		}
	}
	if err := v.err(); err != nil {
		return false, err
	}
	if again {
		return true, nil
	}
	for _, g := range env.guards {
		v.check(g)
	}
	return false, v.err()
}

func constantOf(x *symbolic.Expr) (int64, bool) {
	x = x.Simplify()
	return x.I, x.Op == symbolic.OpInt
}

// replaceSymbol puts an expression in the place of a symbol for good.
func (e *exporter) replaceSymbol(s *symbol, x *symbolic.Expr) {
	put := func(n symbolic.Int) symbolic.Int {
		if n.IsConst() {
			return n
		}
		y := n.Expr().Substitute(func(name string) *symbolic.Expr {
			if name == s.name {
				return x
			}
			return nil
		}).Simplify()
		if y.Op == symbolic.OpInt {
			return symbolic.N(y.I)
		}
		return symbolic.FromExpr(y, n.Hint())
	}
	for i := range e.sizes {
		for k := range e.sizes[i] {
			e.sizes[i][k] = put(e.sizes[i][k])
		}
		e.values[i] = put(e.values[i])
	}
	for k, o := range e.symbols {
		if o == s {
			e.symbols = slices.Delete(e.symbols, k, k+1)
			break
		}
	}
	// What the symbol's places were is a function of the others now.
	if name, a, b, ok := x.Linear(); ok && a != 0 {
		for _, o := range e.symbols {
			if o.name == name {
				for _, src := range s.sources {
					o.sources = append(o.sources, source{src.text, src.a * a, src.a*b + src.b})
				}
				if !s.integer && o.dim == nil { // what is declared of the one bounds the other
					lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
					if a > 0 {
						lo = -floorDiv(-(s.declared.Min - b), a)
						if s.declared.Max != math.MaxInt64 {
							hi = floorDiv(s.declared.Max-b, a)
						}
					}
					o.declared = o.declared.Intersect(symbolic.Interval{Min: lo, Max: hi})
					o.known = o.known.Intersect(symbolic.Interval{Min: lo, Max: hi})
				}
			}
		}
	}
}

// ranges are those of the program: of symbols, and of sizes that are functions of one.
func (e *exporter) ranges(env *env) []export.Range {
	var out []export.Range
	add := func(expr string, r symbolic.Interval) {
		x := export.Range{Expr: expr}
		if r.Min != math.MinInt64 {
			x.Min = &r.Min
		}
		if r.Max != math.MaxInt64 {
			x.Max = &r.Max
		}
		if !slices.ContainsFunc(out, func(o export.Range) bool { return o.Expr == expr }) {
			out = append(out, x)
		}
	}
	declared := func(name string) symbolic.Interval {
		s := env.symbols[name]
		if s == nil {
			return symbolic.Unbounded
		}
		if r, ok := env.refined[name]; ok && s.dim == nil {
			return s.declared.Intersect(r)
		}
		return s.declared
	}
	for _, name := range env.unbacked.names {
		r := symbolic.Unbounded
		if s := env.symbols[name]; s != nil {
			r = env.bounds(name)
		}
		add(name, r)
	}
	for _, s := range e.symbols {
		add(s.name, declared(s.name))
	}
	for _, sizes := range e.sizes {
		for _, n := range sizes {
			if x := n.Expr(); !n.IsConst() && x.Op != symbolic.OpSymbol && !env.hasUnbacked(x) {
				add(x.String(), x.Bounds(declared))
			}
		}
	}
	return out
}

// inSources writes an expression over the places of inputs, as guards have it.
func (e *env) inSources(x *symbolic.Expr) *symbolic.Expr {
	return x.Substitute(func(name string) *symbolic.Expr {
		s := e.symbols[name]
		if s == nil || len(s.sources) == 0 {
			return nil
		}
		return s.sources[0].inverse()
	})
}

// inverse is the symbol as a function of the place.
func (s source) inverse() *symbolic.Expr {
	place := symbolic.Symbol(s.text, true)
	if s.b != 0 {
		place = sum(symbolic.Const(-s.b), place)
	}
	if s.a != 1 {
		place = &symbolic.Expr{Op: "FloorDiv", Args: []*symbolic.Expr{place, symbolic.Const(s.a)}}
	}
	return place
}

var guardOps = map[symbolic.Op]string{"Equality": "==", "Unequality": "!=", "LessThan": "<=", "StrictLessThan": "<"}

func (e *env) guardText(g guard) string {
	return guardSide(e.inSources(g.a)) + " " + guardOps[g.op] + " " + guardSide(e.inSources(g.b))
}

func guardSide(x *symbolic.Expr) string {
	y := inPython(x)
	t := y.String()
	if y.Op == symbolic.OpInt || y.Op == symbolic.OpSymbol || y.Op == "FloorDiv" {
		return t // parenthesised where it needs be
	}
	return "(" + t + ")"
}

// inPython writes functions as Python's operators.
func inPython(x *symbolic.Expr) *symbolic.Expr {
	if len(x.Args) == 0 {
		return x
	}
	y := &symbolic.Expr{Op: x.Op, Name: x.Name, I: x.I, F: x.F, Positive: x.Positive}
	for _, a := range x.Args {
		y.Args = append(y.Args, inPython(a))
	}
	switch x.Op {
	case "Mod", "PythonMod":
		return symbolic.Symbol("("+y.Args[0].String()+" % "+y.Args[1].String()+")", false)
	case "Max", "Min":
		return symbolic.Symbol(strings.ToLower(string(x.Op))+"("+y.Args[0].String()+", "+y.Args[1].String()+")", false)
	}
	return y
}

// guards are the program's: that places agree which share a symbol, and what the trace assumed beyond ranges.
func (e *exporter) guards(env *env) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, s := range e.symbols {
		for k, src := range s.sources {
			if k > 0 {
				add(s.sources[0].inverse().String() + " == " + guardSide(src.inverse()))
			}
			if src.a > 1 {
				rest := &symbolic.Expr{Op: "Mod", Args: []*symbolic.Expr{sum(symbolic.Symbol(src.text, true), symbolic.Const(-src.b)).Simplify(), symbolic.Const(src.a)}}
				add(guardSide(rest) + " == 0")
			}
		}
	}
	for _, g := range env.guards {
		if !env.implied(g) {
			add(env.guardText(g))
		}
	}
	return out
}

// implied reports a guard that the program's ranges say already.
func (e *env) implied(g guard) bool {
	plain := newEnv(nil)
	for _, name := range e.order {
		s := *e.symbols[name]
		s.known = s.declared
		if r, ok := e.refined[name]; ok && s.dim == nil {
			s.known = s.known.Intersect(r)
		}
		plain.add(&s)
	}
	op := g.op
	if op == "Unequality" {
		yes, known := plain.ask("Equality", g.a, g.b)
		return known && !yes
	}
	yes, known := plain.ask(op, g.a, g.b)
	return known && yes
}

// violations collects what contradicts the specification.
type violations struct {
	env   *env
	names []string
	lines []string
	fixes []string
	where string
}

func (v *violations) add(name, line, fix string) {
	if !slices.Contains(v.names, name) {
		v.names = append(v.names, name)
	}
	v.lines = append(v.lines, "  - "+line)
	if fix != "" && !slices.Contains(v.fixes, "  "+fix) {
		v.fixes = append(v.fixes, "  "+fix)
	}
}

func (v *violations) err() error {
	if len(v.lines) == 0 {
		return nil
	}
	msg := fmt.Sprintf("Constraints violated (%s)!\n%s", strings.Join(v.names, ", "), strings.Join(v.lines, "\n"))
	if len(v.fixes) > 0 {
		msg += "\nSuggested fixes:\n" + strings.Join(v.fixes, "\n")
	}
	return &UserError{Kind: ConstraintViolation, Msg: msg, Where: v.where}
}

// label is a symbol as messages name it.
func label(s *symbol) string {
	if s.dim != nil {
		return s.dim.name
	}
	return s.sources[0].text
}

func (v *violations) place(s *symbol) string {
	for _, g := range v.env.guards {
		if v.where == "" && (mentions(g.a, s.name) || mentions(g.b, s.name)) {
			v.where = g.where
		}
	}
	if s.dim != nil && len(s.sources) > 0 {
		return s.dim.name + " = " + s.sources[0].text
	}
	return label(s)
}

// constant: the code fixes what should be free.
func (v *violations) constant(s *symbol, c int64) {
	where := v.place(s)
	if s.dim == nil {
		v.add(label(s), fmt.Sprintf("You marked %s as dynamic but your code specialized it to be a constant (%d). If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.", where, c), "")
		return
	}
	v.add(s.dim.name, fmt.Sprintf("Not all values of %s in the specified range are valid because %s was inferred to be a constant (%d).", where, s.dim.name, c), fmt.Sprintf("%s = %d", s.dim.name, c))
}

// related: the code ties one Dim to another symbol.
func (v *violations) related(s *symbol, x *symbolic.Expr) {
	of := x.Substitute(func(name string) *symbolic.Expr {
		if o := v.env.symbols[name]; o != nil && o.dim != nil {
			return symbolic.Symbol(o.dim.name, true)
		}
		return nil
	})
	var others []string
	x.Symbols(func(name string) {
		if o := v.env.symbols[name]; o != nil {
			others = append(others, v.place(o))
		}
	})
	v.add(s.dim.name, fmt.Sprintf("The values of %s must always be related to the values of %s by %s = %v.", v.place(s), strings.Join(others, ", "), s.dim.name, of), fmt.Sprintf("%s = %v", s.dim.name, of))
}

// check holds a guard against what the Dims allow.
func (v *violations) check(g guard) {
	if v.env.implied(g) {
		return
	}
	var dim *symbol
	for _, side := range []*symbolic.Expr{g.a, g.b} {
		side.Symbols(func(name string) {
			if s := v.env.symbols[name]; s != nil && s.dim != nil && dim == nil {
				dim = s
			}
		})
	}
	if dim == nil {
		return // a guard of the program
	}
	if v.where == "" {
		v.where = g.where
	}
	fix := ""
	if r, ok := v.env.residue[dim.name]; ok && r.r == 0 {
		fix = fmt.Sprintf("%s = %d*_%s", dim.dim.name, r.k, dim.dim.name)
		half := dimText("_"+dim.dim.name, max(1, -floorDiv(-dim.declared.Min, r.k)), math.MaxInt64)
		if dim.declared.Max != math.MaxInt64 {
			half = dimText("_"+dim.dim.name, max(1, -floorDiv(-dim.declared.Min, r.k)), floorDiv(dim.declared.Max, r.k))
		}
		fix = fmt.Sprintf("_%s = %s\n  %s", dim.dim.name, half, fix)
	} else if r, ok := v.env.refined[dim.name]; ok {
		r = r.Intersect(dim.declared)
		if r.Min <= 2 {
			r.Min = 2
		}
		fix = fmt.Sprintf("%s = %s", dim.dim.name, dimText(dim.dim.name, r.Min, r.Max))
	}
	v.add(dim.dim.name, fmt.Sprintf("Not all values of %s in the specified range satisfy the generated guard %s", v.place(dim), v.env.guardText(g)), fix)
}
