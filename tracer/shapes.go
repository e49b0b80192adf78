package tracer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// Shapes says what dimensions may become by the names of all arguments: a [DimMap], [DimList] or nil for a tensor; a [DimSpec] or nil
// for an integer; for a container the same structure of these, as Shapes or a pytree.Dict for dicts and []any for lists, tuples
// and the fields of structs.
type Shapes map[string]any

// ShapesList is [Shapes] by the positions of all arguments.
type ShapesList []any

// leafSpec is what is said of one leaf.
type leafSpec struct {
	dims  []DimSpec // of a tensor
	value DimSpec   // of an integer
	path  string    // dynamic_shapes['x'][0]
}

// resolve goes through a specification along the inputs.
func (c *call) resolve(spec any) ([]leafSpec, error) {
	r := &resolver{c: c, out: make([]leafSpec, len(c.leaves))}
	for i := range r.out {
		if t, ok := c.leaves[i].(*tensor.Tensor); ok {
			r.out[i].dims = make([]DimSpec, t.Dim())
		}
		r.out[i].path = "dynamic_shapes" + strings.TrimPrefix(c.paths[i], "inputs")
	}
	args := append(slices.Clone(c.spec.Children[0].Children), c.spec.Children[1].Children...)
	switch spec := spec.(type) {
	case nil:
		return r.out, nil
	case Shapes:
		keys := slices.Sorted(maps.Keys(spec))
		want := r.topNames()
		if !slices.Equal(keys, slices.Sorted(slices.Values(want))) {
			return nil, invalid("When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names %s of `inputs`, but here they are %s. "+
				"Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`.", quoted(want), quoted(keys))
		}
		flat := ShapesList{}
		rest, variadic := c.variadic()
		for i, n := range c.names {
			v, ok := spec[n]
			if !ok && variadic {
				list, isList := asList(spec[rest])
				k := i - (len(c.spec.Children[0].Children) - r.variadicCount())
				switch {
				case spec[rest] == nil:
				case !isList || len(list) != r.variadicCount():
					return nil, invalid("Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs['%s']` has %d elements, but `dynamic_shapes['%s']` is %v", rest, r.variadicCount(), rest, spec[rest])
				default:
					v = list[k]
				}
			}
			flat = append(flat, v)
		}
		return r.all(args, flat)
	case ShapesList:
		if len(spec) != len(args) {
			return nil, invalid("Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has %d elements, but `dynamic_shapes` has %d elements", len(args), len(spec))
		}
		return r.all(args, spec)
	}
	return nil, invalid("dynamic_shapes is a %T; use tracer.Shapes or tracer.ShapesList", spec)
}

type resolver struct {
	c   *call
	out []leafSpec
	at  int
}

func (r *resolver) variadicCount() int {
	plain := 0
	for _, p := range r.c.params {
		if !strings.HasPrefix(p, "*") {
			plain++
		}
	}
	return max(0, len(r.c.spec.Children[0].Children)-plain)
}

// topNames are the names of the arguments, those of *args together.
func (r *resolver) topNames() []string {
	n := r.variadicCount()
	if n == 0 {
		return r.c.names
	}
	rest, _ := r.c.variadic()
	pos := len(r.c.spec.Children[0].Children)
	return append(append(slices.Clone(r.c.names[:pos-n]), rest), r.c.names[pos:]...)
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = "'" + n + "'"
	}
	return "[" + strings.Join(q, ", ") + "]"
}

func (r *resolver) all(args []*pytree.Spec, specs ShapesList) ([]leafSpec, error) {
	for i, a := range args {
		if err := r.node(a, specs[i], "['"+r.c.names[i]+"']"); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

func asList(x any) ([]any, bool) {
	switch x := x.(type) {
	case []any:
		return x, true
	case pytree.Tuple:
		return x, true
	case pytree.List:
		return x, true
	case ShapesList:
		return x, true
	case pytree.NamedTuple:
		return x.Values, true
	case pytree.Node:
		return x.Children, true
	}
	return nil, false
}

func asDict(x any) (map[string]any, bool) {
	switch x := x.(type) {
	case Shapes:
		return x, true
	case map[string]any:
		return x, true
	case pytree.Dict:
		m := map[string]any{}
		for _, e := range x {
			m[fmt.Sprint(e.Key)] = e.Value
		}
		return m, true
	}
	return nil, false
}

func (r *resolver) node(s *pytree.Spec, spec any, path string) error {
	if s.IsLeaf() {
		r.at++
		return r.leaf(r.at-1, spec, path)
	}
	if spec == nil {
		r.at += s.NumLeaves()
		return nil
	}
	mismatch := func(what string) error {
		return invalid("Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs%s` is %s, but `dynamic_shapes%s` %s", path, kindOf(s), path, what)
	}
	keys := s.Keys()
	if dict, ok := asDict(spec); ok {
		if len(keys) > 0 && keys[0].Kind != pytree.MapKey && keys[0].Kind != pytree.IntMapKey {
			return mismatch("is a dict")
		}
		if len(dict) != len(keys) {
			return mismatch(fmt.Sprintf("has the keys %s", quoted(slices.Sorted(maps.Keys(dict)))))
		}
		for i, k := range keys {
			name := k.Name
			if k.Kind == pytree.IntMapKey {
				name = fmt.Sprint(k.Num)
			}
			v, ok := dict[name]
			if !ok {
				return mismatch(fmt.Sprintf("has the keys %s", quoted(slices.Sorted(maps.Keys(dict)))))
			}
			if err := r.node(s.Children[i], v, path+k.String()); err != nil {
				return err
			}
		}
		return nil
	}
	list, ok := asList(spec)
	switch {
	case !ok:
		return mismatch(fmt.Sprintf("is a %T", spec))
	case len(keys) > 0 && keys[0].Kind == pytree.MapKey:
		return mismatch("is a list")
	case len(list) != len(s.Children):
		return mismatch(fmt.Sprintf("has %d elements", len(list)))
	}
	for i, k := range keys {
		if err := r.node(s.Children[i], list[i], path+k.String()); err != nil {
			return err
		}
	}
	return nil
}

func kindOf(s *pytree.Spec) string {
	return fmt.Sprintf("a %s of %d", strings.TrimPrefix(s.Type, "builtins."), len(s.Children))
}

func (r *resolver) leaf(i int, spec any, path string) error {
	if spec == nil {
		return nil
	}
	t, isTensor := r.c.leaves[i].(*tensor.Tensor)
	o := &r.out[i]
	switch spec := spec.(type) {
	case DimMap:
		if !isTensor {
			break
		}
		for _, k := range slices.Sorted(maps.Keys(spec)) {
			d := k
			if d < 0 {
				d += t.Dim()
			}
			if d < 0 || d >= t.Dim() {
				return invalid("dynamic_shapes%s: dimension %d is out of range for a tensor of %d dimensions", path, k, t.Dim())
			}
			o.dims[d] = spec[k]
		}
		return nil
	case DimList:
		if !isTensor {
			break
		}
		if len(spec) != t.Dim() {
			return invalid("Expected dynamic shape spec %v specified at `dynamic_shapes%s` to have the same length as the actual tensor shape %v (expected %d, but got %d instead)",
				spec, path, t.Sizes(), t.Dim(), len(spec))
		}
		copy(o.dims, spec)
		return nil
	case DimSpec:
		if _, isInt := r.c.leaves[i].(int64); isInt {
			if d, named := spec.(*Dim); named {
				return invalid("dynamic_shapes%s: the Dim %v cannot stand for an int; use tracer.Dynamic or tracer.Auto", path, d)
			}
			o.value = spec
			return nil
		}
	}
	if !isTensor {
		return invalid("Cannot associate shape %v specified at `dynamic_shapes%s` to non-tensor type %T at `inputs%s` (expected None)", spec, path, r.c.leaves[i], path)
	}
	return invalid("Unexpected input tensor shape %v specified at `dynamic_shapes%s` (expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)", spec, path)
}
