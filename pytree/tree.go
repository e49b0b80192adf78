package pytree

import "reflect"

// Flatten gives the leaves and the structure of a value made of this package's types, slices, maps and structs, as PyTorch's
// tree_flatten does: a [Tuple] is a tuple, any other slice a list, a map or struct a dict.
func Flatten(v any) (leaves []any, spec *Spec, err error) {
	w := writer{lax: true}
	if spec, err = w.node(reflect.ValueOf(v), 0); err != nil {
		return nil, nil, err
	}
	return w.out, spec, nil
}

// Map gives v with f applied to each leaf, as PyTorch's tree_map does. What is none of this package's containers is a leaf.
func Map(v any, f func(leaf any) any) any {
	list := func(l []any) []any {
		out := make([]any, len(l))
		for i, x := range l {
			out[i] = Map(x, f)
		}
		return out
	}
	entries := func(d []Entry) []Entry {
		out := make([]Entry, len(d))
		for i, e := range d {
			out[i] = Entry{e.Key, Map(e.Value, f)}
		}
		return out
	}
	switch v := v.(type) {
	case Tuple:
		return Tuple(list(v))
	case List:
		return List(list(v))
	case []any:
		return list(v)
	case Dict:
		return Dict(entries(v))
	case OrderedDict:
		return OrderedDict(entries(v))
	case NamedTuple:
		v.Values = list(v.Values)
		return v
	case *Node:
		n := *v
		n.Children = list(v.Children)
		return &n
	}
	return f(v)
}
