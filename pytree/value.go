package pytree

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Tuple is a Python tuple.
type Tuple []any

// List is a Python list.
type List []any

// Entry is one item of a dict. Its key is a string or an int64.
type Entry struct {
	Key   any
	Value any
}

// Dict is a Python dict, whose order is part of its structure: pytree.Dict{{"a", x}, {"b", y}}.
type Dict []Entry

// OrderedDict is a collections.OrderedDict.
type OrderedDict []Entry

// Get finds the value under a key.
func (d Dict) Get(key any) (any, bool) {
	for _, e := range d {
		if e.Key == key {
			return e.Value, true
		}
	}
	return nil, false
}

// Get finds the value under a key.
func (d OrderedDict) Get(key any) (any, bool) { return Dict(d).Get(key) }

// NamedTuple is a value of a collections.namedtuple class. Fields may be empty if an old archive does not hold them.
type NamedTuple struct {
	Type   string // the registered name
	Fields []string
	Values []any
}

// Node is a container of any other type: a dataclass, a torch.return_types structure, a type that its own code flattens. Type
// and Context are those of the archive, so that a value can be made without knowing what the type means.
type Node struct {
	Type     string
	Context  json.RawMessage
	Fields   []string // names of the children, if they have names
	Children []any
}

// MismatchError is a value that has not the structure of a Spec.
type MismatchError struct {
	Path   string // the place, such as x['k'][0]; "" for the whole
	Reason string
	Want   *Spec // of the whole call
	Got    *Spec // of the whole value, nil if it has no structure of its own
	Err    error // what a Codec says of a leaf, nil if the structure is at fault
}

// Unwrap gives the fault of a leaf.
func (e *MismatchError) Unwrap() error { return e.Err }

// Error tells the place and the reason, then both structures in PyTorch's words.
func (e *MismatchError) Error() string {
	var b strings.Builder
	b.WriteString("pytree: ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Reason)
	if e.Want != nil && e.Got != nil {
		fmt.Fprintf(&b, "\nTrying to flatten user inputs with exported input tree spec: \n%v\nbut actually got inputs with tree spec of: \n%v.\n"+
			"Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing.", e.Want, e.Got)
	}
	return b.String()
}

// Unflatten builds the value that s describes from its leaves: Tuple, List, Dict, OrderedDict, NamedTuple or *Node; a leaf
// stands for itself.
func (s *Spec) Unflatten(leaves []any) (any, error) {
	if len(leaves) != s.leaves {
		return nil, &MismatchError{Reason: fmt.Sprintf("want %d leaves, got %d", s.leaves, len(leaves))}
	}
	return s.unflatten(&leaves), nil
}

func (s *Spec) unflatten(leaves *[]any) any {
	if s.IsLeaf() {
		v := (*leaves)[0]
		*leaves = (*leaves)[1:]
		return v
	}
	kids := make([]any, len(s.Children))
	for i, c := range s.Children {
		kids[i] = c.unflatten(leaves)
	}
	switch plainType(s.Type) {
	case typeTuple:
		return Tuple(kids)
	case typeList:
		return List(kids)
	case typeDict, typeDefaultDict:
		return Dict(s.entries(kids))
	case typeOrderedDict:
		return OrderedDict(s.entries(kids))
	case typeNamedTuple:
		return NamedTuple{s.className(), s.fieldNames(), kids}
	}
	return &Node{s.Type, s.Context, s.fieldNames(), kids}
}

func (s *Spec) entries(kids []any) []Entry {
	out := make([]Entry, len(kids))
	for i, k := range s.keys {
		out[i] = Entry{k.value(), kids[i]}
	}
	return out
}

// value is the key as a Go value.
func (k Key) value() any {
	if k.Kind == IntMapKey {
		return k.Num
	}
	return k.Name
}

// fieldNames are the names of the children, nil if they are numbered.
func (s *Spec) fieldNames() []string {
	if len(s.keys) == 0 || s.keys[0].Kind != AttrKey {
		return nil
	}
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.Name
	}
	return names
}
