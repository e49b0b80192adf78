package tracer

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// ShapesCollection says by tensor, not by its place among the inputs, what sizes may become, as torch.export.ShapesCollection. The zero
// value is empty.
type ShapesCollection struct {
	specs map[*tensor.Tensor]any
}

// Set gives the specification of a tensor, a [DimMap] or [DimList]. Another one for the same tensor is an error of
// [ShapesCollection.DynamicShapes].
func (c *ShapesCollection) Set(t *tensor.Tensor, spec any) {
	if c.specs == nil {
		c.specs = map[*tensor.Tensor]any{}
	}
	if old, ok := c.specs[t]; ok && fmt.Sprint(old) != fmt.Sprint(spec) {
		spec = invalid("Shapes assigned to input are ambiguous: %v and %v", old, spec)
	}
	c.specs[t] = spec
}

// Get is the specification of a tensor, nil if it has none.
func (c *ShapesCollection) Get(t *tensor.Tensor) any { return c.specs[t] }

// Len is the number of tensors.
func (c *ShapesCollection) Len() int { return len(c.specs) }

// DynamicShapes makes the specification of a call's inputs. All tensors of the collection must be among them. Options are those of the
// export, of which keyword arguments and the registry matter.
func (c *ShapesCollection) DynamicShapes(m any, args []any, opts ...Option) (Shapes, error) {
	e, err := newExporter(m, args, opts)
	if err != nil {
		return nil, err
	}
	call := e.call
	found := map[*tensor.Tensor]bool{}
	specs := make([]any, len(call.leaves))
	for i, l := range call.leaves {
		if t, ok := l.(*tensor.Tensor); ok {
			found[t] = true
			specs[i] = c.specs[t]
			if err, ok := specs[i].(error); ok {
				return nil, err
			}
		}
	}
	for t := range c.specs {
		if !found[t] {
			return nil, invalid("Some assigned shapes were not found in args/kwargs: one of a tensor of sizes %v", t.Sizes())
		}
	}
	return call.shapes(specs)
}

// shapes gives specifications of leaves the structure of the inputs.
func (c *call) shapes(leaves []any) (Shapes, error) {
	both, err := c.spec.Unflatten(leaves)
	if err != nil {
		return nil, err
	}
	out := Shapes{}
	pos := both.(pytree.Tuple)[0].(pytree.Tuple)
	for i, v := range pos {
		out[c.names[i]] = v
	}
	for _, e := range both.(pytree.Tuple)[1].(pytree.Dict) {
		out[e.Key.(string)] = e.Value
	}
	return out, nil
}

// AdditionalInputs finds out what is dynamic by example: sizes and integers that differ from call to call are, as
// torch.export.AdditionalInputs. The zero value has no further inputs.
type AdditionalInputs struct {
	calls []additional
}

type additional struct {
	args   []any
	kwargs pytree.Dict
}

// Add adds the inputs of a call; kwargs may be nil.
func (a *AdditionalInputs) Add(args []any, kwargs pytree.Dict) {
	a.calls = append(a.calls, additional{args, kwargs})
}

// DynamicShapes compares the example with the inputs that were added: they must have its structure, dtypes and dimensions, and its
// constants.
func (a *AdditionalInputs) DynamicShapes(m any, args []any, opts ...Option) (Shapes, error) {
	e, err := newExporter(m, args, opts)
	if err != nil {
		return nil, err
	}
	first := e.call
	specs := make([]any, len(first.leaves))
	for _, add := range a.calls {
		next, err := newCall(m, add.args, add.kwargs, first.reg)
		if err != nil {
			return nil, err
		}
		if !next.spec.Equal(first.spec) {
			return nil, invalid("The additional inputs have another structure than the example's")
		}
		for i, l := range first.leaves {
			if specs[i], err = differs(specs[i], l, next.leaves[i], first.paths[i]); err != nil {
				return nil, err
			}
		}
	}
	return first.shapes(specs)
}

// differs marks what is not the same in two examples of one input.
func differs(spec, x, y any, path string) (any, error) {
	switch x := x.(type) {
	case *tensor.Tensor:
		t, ok := y.(*tensor.Tensor)
		if !ok || t.Dim() != x.Dim() || t.DType() != x.DType() {
			return nil, invalid("The additional input at %s is another kind of tensor than the example", path)
		}
		dims, _ := spec.(DimMap)
		for d, n := range x.Sizes() {
			if n != t.Sizes()[d] {
				if dims == nil {
					dims = DimMap{}
				}
				dims[d] = Dynamic
			}
		}
		if dims == nil {
			return nil, nil
		}
		return dims, nil
	case int64:
		if v, ok := y.(int64); ok && v != x {
			return Dynamic, nil
		}
		return spec, nil
	}
	if x != y {
		return nil, invalid("The additional input at %s is %v, the example %v; only sizes and integers may differ", path, y, x)
	}
	return spec, nil
}

// Verify runs a program on the inputs that were added: its guards must hold for all of them.
func (a *AdditionalInputs) Verify(p *export.Program, m any, opts ...Option) error {
	run, err := interp.New(p, interp.Options{})
	if err != nil {
		return err
	}
	for _, add := range a.calls {
		e, err := newExporter(m, add.args, append(opts[:len(opts):len(opts)], WithKwargs(add.kwargs)))
		if err != nil {
			return err
		}
		if _, err := run.Run(context.Background(), e.call.leaves...); err != nil {
			return err
		}
	}
	return nil
}

var (
	fixDim     = regexp.MustCompile(`^(\w+) = Dim\('(\w+)'(?:, min=(\d+))?(?:, max=(\d+|oo))?\)$`)
	fixConst   = regexp.MustCompile(`^(\w+) = (\d+)$`)
	fixDerived = regexp.MustCompile(`^(\w+) = (?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?$`)
)

// RefineDynamicShapesFromSuggestedFixes puts the suggested fixes of a CONSTRAINT_VIOLATION into a specification, as the function of
// torch.export.dynamic_shapes does: Dims get other bounds, become functions of others, or fix a size. The specification is not changed.
func RefineDynamicShapesFromSuggestedFixes(msg string, shapes Shapes) (Shapes, error) {
	_, text, ok := strings.Cut(msg, "Suggested fixes:")
	if !ok {
		return nil, invalid("the message has no suggested fixes")
	}
	dims := map[string]*Dim{}
	eachDim(shapes, func(d *Dim) { dims[d.top().name] = d.top() })
	fixes := map[string]DimSpec{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, " ("); i > 0 && !strings.Contains(line, "Dim(") { // the place that errors end with
			line = line[:i]
		}
		name, fix, err := parseFix(line, dims)
		if err != nil {
			return nil, err
		}
		if name == "" {
			break
		}
		if d, ok := fix.(*Dim); ok {
			dims[name] = d
		}
		fixes[name] = fix
	}
	if len(fixes) == 0 {
		return nil, invalid("the message has no suggested fixes")
	}
	return refined(shapes, fixes).(Shapes), nil
}

func parseFix(line string, dims map[string]*Dim) (name string, fix DimSpec, err error) {
	number := func(s string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	if m := fixDim.FindStringSubmatch(line); m != nil {
		d, err := NewDim(m[2], Min(number(m[3], 0)), Max(number(m[4], math.MaxInt64)))
		return m[1], d, err
	}
	if m := fixConst.FindStringSubmatch(line); m != nil {
		return m[1], Size(number(m[2], 0)), nil
	}
	if m := fixDerived.FindStringSubmatch(line); m != nil {
		root := dims[m[3]]
		if root == nil {
			return "", nil, invalid("the suggested fix %q names %s, which the specification does not", line, m[3])
		}
		d := root
		if m[2] != "" {
			d = d.Mul(number(m[2], 1))
		}
		switch m[4] {
		case "+":
			d = d.Add(number(m[5], 0))
		case "-":
			d = d.Sub(number(m[5], 0))
		}
		return m[1], d, d.err
	}
	return "", nil, nil
}

// eachDim calls f for the Dims in a specification.
func eachDim(spec any, f func(d *Dim)) {
	switch s := spec.(type) {
	case *Dim:
		f(s)
	case DimMap:
		for _, d := range s {
			eachDim(d, f)
		}
	case DimList:
		for _, d := range s {
			eachDim(d, f)
		}
	default:
		if list, ok := asList(spec); ok {
			for _, x := range list {
				eachDim(x, f)
			}
		} else if dict, ok := asDict(spec); ok {
			for _, x := range dict {
				eachDim(x, f)
			}
		}
	}
}

// refined is a specification with fixes in the place of Dims.
func refined(spec any, fixes map[string]DimSpec) any {
	dim := func(d DimSpec) DimSpec {
		named, ok := d.(*Dim)
		if !ok {
			return d
		}
		fix, ok := fixes[named.top().name]
		if !ok {
			return d
		}
		switch fix := fix.(type) {
		case Size:
			return Size(named.a*int64(fix) + named.b)
		case *Dim:
			if named.root != nil {
				return fix.Mul(named.a).Add(named.b)
			}
			return fix
		}
		return fix
	}
	switch s := spec.(type) {
	case DimSpec:
		return dim(s)
	case DimMap:
		out := maps.Clone(s)
		for k, d := range s {
			out[k] = dim(d)
		}
		return out
	case DimList:
		out := make(DimList, len(s))
		for k, d := range s {
			out[k] = dim(d)
		}
		return out
	}
	if list, ok := asList(spec); ok {
		out := make([]any, len(list))
		for i, x := range list {
			out[i] = refined(x, fixes)
		}
		return out
	}
	if dict, ok := asDict(spec); ok {
		out := Shapes{}
		for k, x := range dict {
			out[k] = refined(x, fixes)
		}
		return out
	}
	return spec
}
