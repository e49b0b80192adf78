package tracer

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// FailureType says what a [FailureReport] is about.
type FailureType int

// The types, as torch.export's draft_export numbers them.
const (
	MissingFakeKernel FailureType = iota + 1
	DataDependentFailure
	GuardAdded
	MismatchedFakeKernel
)

// String is PyTorch's name of the type.
func (f FailureType) String() string {
	return [...]string{"", "MISSING_FAKE_KERNEL", "DATA_DEPENDENT_ERROR", "GUARD_ADDED", "MISMATCHED_FAKE_KERNEL"}[f]
}

// FailureReport is something that keeps [Export] from making a sound program.
type FailureReport struct {
	Type        FailureType
	Op          string // of the kernel types, such as "mylib::foo"
	Reason      string // of a mismatch
	Expr        string // what was asked
	Result      string // what the example answered
	Occurrences int
	Sources     string  // of a guard: where its symbols come from
	NewShapes   string  // of a guard: the shapes that the program was made for
	UserStack   []Frame // the user's code, innermost last
	Stack       []Frame // all of it
	XFail       bool    // expected: it does not count
}

// Frame is a place in Go code. File is a key of [DraftReport.StrToFilename].
type Frame struct {
	File, Line int
	Name, Loc  string
}

// ExpressionCreated is an expression that a failure is about, or a part of one.
type ExpressionCreated struct {
	ResultID    int
	ArgumentIDs []int
	Expr        string
}

// TensorProfile is what a real run showed of a tensor: its dimensions, not its sizes.
type TensorProfile struct {
	Dim   int
	DType tensor.DType
}

// OpProfile is what a real run showed of an operator that does not describe its results.
type OpProfile struct {
	Args, Outs []TensorProfile
}

// DraftReport says what [DraftExport] assumed.
type DraftReport struct {
	Failures           []*FailureReport
	StrToFilename      map[int]string
	ExpressionsCreated map[int]ExpressionCreated
	OpProfiles         map[string][]OpProfile
}

// Successful reports that nothing was assumed: [Export] would do.
func (r *DraftReport) Successful() bool {
	return !slices.ContainsFunc(r.Failures, func(f *FailureReport) bool { return !f.XFail })
}

// String is the report in PyTorch's words.
func (r *DraftReport) String() string {
	if r.Successful() {
		return `
##############################################################################################
Congratulations: No issues are found during export, and it was able to soundly produce a graph.
You can now change back to tracer.Export
##############################################################################################
`
	}
	var b strings.Builder
	fmt.Fprintf(&b, `
###################################################################################################
WARNING: %d issue(s) found during export, and it was not able to soundly produce a graph.
Please follow the instructions to fix the errors.
###################################################################################################


`, len(r.Failures))
	for i, f := range r.Failures {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r.Text(f))
	}
	return b.String()
}

// Text is one failure in PyTorch's words.
func (r *DraftReport) Text(f *FailureReport) string {
	switch f.Type {
	case MissingFakeKernel:
		return fmt.Sprintf("Missing fake kernel.\n    torch.ops.%s is missing a fake kernel implementation.\n\n    Please give the operator a Shape function.\n", f.Op)
	case MismatchedFakeKernel:
		return fmt.Sprintf("Mismatched fake kernel.\n    torch.ops.%s has a fake kernel implementation, but it has incorrect behavior, based on the real kernel.\n    The reason for the mismatch is: %s.\n\n    Please correct the operator's Shape function.\n", f.Op, f.Reason)
	case GuardAdded:
		return fmt.Sprintf("Guard Added.\n    A guard was added during tracing, which might've resulted in some incorrect\n    tracing or constraint violation error.\n"+
			"    Specifically, this guard was added: %s, where %s.\n    This occurred at the following stacktrace: %s:\n\n    And the following framework stacktrace: %s\n\n"+
			"    Because of this, we have modified the dynamic shapes structure to be the\n    following. You can also use tracer.Auto instead to specify your\n    dynamic shapes, and we will automatically infer the dynamism for you.\n"+
			"    ```\n    dynamic_shapes = %s\n    ```\n", f.Expr, f.Sources, r.prettify(f.UserStack), r.prettify(f.Stack), f.NewShapes)
	}
	return fmt.Sprintf("Data dependent error.\n    When exporting, we were unable to evaluate the value of `%s`.\n    This was encountered %d times.\n    This occurred at the following user stacktrace: %s\n\n"+
		"    And the following framework stacktrace: %s\n\n    As a result, it was specialized to a constant (e.g. `%s` in the 1st occurrence), and asserts were inserted into the graph.\n\n"+
		"    Please add `tracer.Check(...)` to the original code to assert this data-dependent assumption.\n", f.Expr, f.Occurrences, r.prettify(f.UserStack), r.prettify(f.Stack), f.Result)
}

func (r *DraftReport) prettify(stack []Frame) string {
	var b strings.Builder
	for _, f := range stack {
		fmt.Fprintf(&b, "\n        File %s, lineno %d, in %s", r.StrToFilename[f.File], f.Line, f.Name)
	}
	if len(stack) > 0 {
		fmt.Fprintf(&b, "\n            %s", stack[len(stack)-1].Loc)
	}
	return b.String()
}

// draft is the state of a draft export.
type draft struct {
	report *DraftReport
	real   *aten.Build
	of     map[*aten.Value]*tensor.Tensor // what tensors of the graph are in the run of the example
	outs   []*aten.Value                  // what the call under way really gave, nil if it could not run
	source origin
	shapes string // what inputs may be, when Dims have become automatic
}

func newDraft() *draft {
	return &draft{report: &DraftReport{StrToFilename: map[int]string{}, ExpressionsCreated: map[int]ExpressionCreated{}, OpProfiles: map[string][]OpProfile{}},
		source: origin{lines: map[string][]string{}}, of: map[*aten.Value]*tensor.Tensor{}}
}

// DraftExport makes a program even where [Export] refuses, and reports what it assumed, as draft_export of torch.export: it runs the
// example along. Questions that only data can answer get the example's answer, which the program then checks; operators that do not
// describe their results, or wrongly, are described by what they really gave; sizes that turn out to be tied become automatic ones.
func DraftExport[A any](m any, args []A, opts ...Option) (*export.Program, *DraftReport, error) {
	d := newDraft()
	run := func(relax bool) (*export.Program, error) {
		*d = *newDraft()
		o := append(slices.Clone(opts), func(e *exporter) error { e.draft, e.relax = d, relax; return nil })
		return Export(m, args, o...)
	}
	p, err := run(false)
	var user *UserError
	if errors.As(err, &user) && user.Kind == ConstraintViolation {
		guards := d.report.Failures
		if p, err = run(true); err == nil {
			for _, g := range guards {
				if g.Type == GuardAdded && !slices.ContainsFunc(d.report.Failures, func(f *FailureReport) bool { return f.Expr == g.Expr }) {
					d.report.Failures = append(d.report.Failures, g)
				}
			}
			for _, f := range d.report.Failures {
				f.NewShapes = d.shapes
			}
		}
	} else {
		d.report.Failures = slices.DeleteFunc(d.report.Failures, func(f *FailureReport) bool { return f.Type == GuardAdded })
	}
	if err != nil {
		return nil, nil, err
	}
	return p, d.report, nil
}

// fail notes a failure; one that was seen before is counted.
func (d *draft) fail(f *FailureReport) {
	f.UserStack, f.Stack = d.stack()
	for _, o := range d.report.Failures {
		if o.Type == f.Type && o.Op == f.Op && o.Reason == f.Reason && o.Expr == f.Expr && slices.Equal(o.UserStack, f.UserStack) {
			o.Occurrences++
			return
		}
	}
	f.Occurrences = 1
	d.report.Failures = append(d.report.Failures, f)
}

// created notes an expression and its parts, and gives its number.
func (d *draft) created(x *symbolic.Expr) int {
	var args []int
	for _, a := range x.Args {
		if len(a.Args) > 0 || a.Op == symbolic.OpSymbol {
			args = append(args, d.created(a))
		}
	}
	for id, e := range d.report.ExpressionsCreated {
		if e.Expr == x.String() {
			return id
		}
	}
	id := len(d.report.ExpressionsCreated)
	d.report.ExpressionsCreated[id] = ExpressionCreated{ResultID: id, ArgumentIDs: args, Expr: x.String()}
	return id
}

// stack is where the code is, outermost first: the user's frames, and all.
func (d *draft) stack() (user, all []Frame) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") && !strings.HasPrefix(f.Function, "testing.") {
			frame := Frame{File: d.file(f.File), Line: f.Line, Name: f.Function[strings.LastIndexByte(f.Function, '.')+1:], Loc: d.source.line(f.File, f.Line)}
			all = append(all, frame)
			if !slices.ContainsFunc(ownPackages, func(p string) bool { return strings.HasPrefix(f.Function, p) }) {
				user = append(user, frame)
			}
		}
		if !more {
			break
		}
	}
	slices.Reverse(user)
	slices.Reverse(all)
	return user, all
}

func (d *draft) file(name string) int {
	for id, n := range d.report.StrToFilename {
		if n == name {
			return id
		}
	}
	id := len(d.report.StrToFilename)
	d.report.StrToFilename[id] = name
	return id
}

// run computes a call on the example; afterwards d.outs is what it gave.
func (d *draft) run(name string, args []any) {
	d.outs = nil
	real := make([]any, len(args))
	for i, a := range args {
		x, ok := d.actual(a)
		if !ok {
			return
		}
		real[i] = x
	}
	defer func() {
		if recover() != nil { // the recorder refuses it, too
			d.outs = nil
		}
	}()
	d.outs = d.real.CallN(name, real...)
}

// actual is an argument in the run of the example.
func (d *draft) actual(a any) (any, bool) {
	switch a := a.(type) {
	case *aten.Value:
		if a == nil {
			return a, true
		}
		t := d.of[a]
		return aten.FromTensor(t), t != nil
	case []*aten.Value:
		out := make([]*aten.Value, len(a))
		for i, v := range a {
			if v == nil {
				continue
			}
			x, ok := d.actual(v)
			if !ok {
				return nil, false
			}
			out[i] = x.(*aten.Value)
		}
		return out, true
	case symbolic.Int:
		return symbolic.N(a.Hint()), true
	case []symbolic.Int:
		out := make([]symbolic.Int, len(a))
		for i := range a {
			out[i] = symbolic.N(a[i].Hint())
		}
		return out, true
	case []any:
		out := make([]any, len(a))
		for i := range a {
			x, ok := d.actual(a[i])
			if !ok {
				return nil, false
			}
			out[i] = x
		}
		return out, true
	case aten.Scalar:
		a.Ref, a.I = nil, symbolic.N(a.I.Hint())
		return a, true
	case aten.KwArg:
		x, ok := d.actual(a.Value)
		return aten.Kw(a.Name, x), ok
	}
	return a, true
}

// note keeps what a call really gave for its results.
func (d *draft) note(results []*aten.Value) {
	for i, v := range results {
		if v != nil && i < len(d.outs) && d.outs[i] != nil {
			d.of[v] = d.outs[i].T
		}
	}
	d.outs = nil
}

// described compares what a shape function says with what a call really gave; where it says nothing or something else, that counts.
func (d *draft) described(e *env, op *aten.Op, a *aten.Args, outs []*aten.Value, err error) ([]*aten.Value, error) {
	if d.outs == nil || len(op.Signature().Returns) == 0 {
		return outs, err
	}
	name := op.Signature().Namespace + "." + op.Signature().Base + "." + op.Name()[strings.LastIndexByte(op.Name(), '.')+1:]
	if err != nil {
		if op.Shape != nil || op.Decomp != nil {
			return outs, err
		}
		d.fail(&FailureReport{Type: MissingFakeKernel, Op: name})
	} else {
		reason := mismatch(outs, d.outs)
		if reason == "" {
			return outs, nil
		}
		d.fail(&FailureReport{Type: MismatchedFakeKernel, Op: name, Reason: reason})
	}
	d.profile(name, a)
	real := make([]*aten.Value, len(d.outs))
	for i, o := range d.outs {
		sizes := make([]symbolic.Int, o.Dim())
		for k := range sizes {
			sizes[k] = e.newUnbacked(symbolic.Interval{Min: 0, Max: 1<<63 - 1}, o.Sizes[k].Hint())
		}
		real[i] = &aten.Value{Meta: aten.Contig(o.DType, sizes...)}
	}
	return real, nil
}

// mismatch says how descriptions differ from real tensors, "" if they do not.
func mismatch(outs, real []*aten.Value) string {
	if len(outs) != len(real) {
		return fmt.Sprintf("number of outputs: %d != %d", len(outs), len(real))
	}
	for i, o := range outs {
		r := real[i]
		switch {
		case o == nil || r == nil || o.DType == tensor.Invalid:
		case o.DType != r.DType:
			return fmt.Sprintf("Dtypes %v and %v are not equal!", o.DType, r.DType)
		case o.Dim() != r.Dim():
			return fmt.Sprintf("mismatch between fake value %v and real value %v", o.Sizes, r.Sizes)
		default:
			for k := range o.Sizes {
				if o.Sizes[k].Hint() != r.Sizes[k].Hint() {
					return fmt.Sprintf("mismatch between fake value %v and real value %v, at output%s.size(%d)", o.Sizes[k], r.Sizes[k], index(i, len(outs)), k)
				}
			}
		}
	}
	return ""
}

func index(i, n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("[%d]", i)
}

func (d *draft) profile(name string, a *aten.Args) {
	var p OpProfile
	for _, x := range a.V {
		if v, ok := x.(*aten.Value); ok && v != nil {
			p.Args = append(p.Args, TensorProfile{v.Dim(), v.DType})
		}
	}
	for _, o := range d.outs {
		p.Outs = append(p.Outs, TensorProfile{o.Dim(), o.DType})
	}
	d.report.OpProfiles[name] = append(d.report.OpProfiles[name], p)
}

// answer is what the example says to a question about data.
func (d *draft) answer(e *env, op symbolic.Op, a, b *symbolic.Expr) bool {
	x, y := e.rec.Size(symbolic.FromExpr(a, 0)).Hint(), e.rec.Size(symbolic.FromExpr(b, 0)).Hint()
	yes := holds(op, x, y)
	asked := &symbolic.Expr{Op: op, Args: []*symbolic.Expr{a, b}}
	d.created(asked)
	d.fail(&FailureReport{Type: DataDependentFailure, Expr: asked.String(), Result: pythonBool(yes)})
	e.assert(newGuard(op, a, b, yes))
	return yes
}

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// guarded notes a guard on the sizes of inputs; it counts if the specification allows other sizes.
func (d *draft) guarded(e *env, g guard) {
	var sources []string
	for _, side := range []*symbolic.Expr{g.a, g.b} {
		side.Symbols(func(name string) {
			if s := e.symbols[name]; s != nil && len(s.sources) > 0 {
				if text := name + ": " + s.sources[0].text; !slices.Contains(sources, text) {
					sources = append(sources, text)
				}
			}
		})
	}
	if len(sources) == 0 {
		return
	}
	x := canonical(&symbolic.Expr{Op: g.op, Args: []*symbolic.Expr{g.a, g.b}})
	d.created(x)
	d.fail(&FailureReport{Type: GuardAdded, Expr: x.String(), Sources: "{" + strings.Join(sources, ", ") + "}"})
}

// hold takes a tensor of the example, which the run may write to.
func (d *draft) hold(v *aten.Value, t *tensor.Tensor) {
	if d != nil {
		d.of[v] = d.real.Call("clone", aten.FromTensor(t)).T
	}
}

// drafting is the draft under way, nil outside of one.
func (e *env) drafting() *draft {
	if e == nil {
		return nil
	}
	return e.draft
}
