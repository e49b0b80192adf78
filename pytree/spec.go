// Package pytree is PyTorch's pytrees: the TreeSpec that describes how nested containers are flattened, and its serialized
// form (protocol 1 JSON).
package pytree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Spec is a TreeSpec. A leaf has no Type.
type Spec struct {
	Type     string          // "builtins.tuple", "builtins.dict", ...; "" for a leaf
	Context  json.RawMessage // as serialized; kept for types that are not known here
	Children []*Spec
	keys     []Key
	none     []string // fields of a dataclass that are None and so have no child
	leaves   int
}

// Key is one step of a path into a tree.
type Key struct {
	Kind KeyKind
	Name string // Map with a string key, Attr; the Python form of an OtherKey
	Num  int64  // Seq, and Map with an integer key
}

// KeyKind tells how a step is written.
type KeyKind uint8

// The kinds: ['k'], [0] as a key, [0] as a position, .name, and keys of dicts that are neither string nor int, such as [None].
const (
	MapKey KeyKind = iota
	IntMapKey
	SeqKey
	AttrKey
	OtherKey
)

// String prints the step as Python does.
func (k Key) String() string {
	switch k.Kind {
	case MapKey:
		return "[" + quote(k.Name) + "]"
	case AttrKey:
		return "." + k.Name
	case OtherKey:
		return "[" + k.Name + "]"
	}
	return "[" + strconv.FormatInt(k.Num, 10) + "]"
}

// Error is a TreeSpec that cannot be read.
type Error struct{ Msg string }

// Error gives the reason.
func (e *Error) Error() string { return "pytree: " + e.Msg }

const maxDepth = 200

type rawSpec struct {
	Type     *string         `json:"type"`
	Context  json.RawMessage `json:"context"`
	Children []rawSpec       `json:"children_spec"`
}

// Parse reads a TreeSpec text. fields gives the field names of named tuples by their serialized type name.
func Parse(text string, fields map[string][]string) (*Spec, error) {
	if depthOf(text) > 4*maxDepth {
		return nil, &Error{"the tree is nested too deeply"}
	}
	var pair []json.RawMessage
	if err := json.Unmarshal([]byte(text), &pair); err != nil || len(pair) != 2 {
		return nil, &Error{fmt.Sprintf("want [protocol, tree] (%v)", err)}
	}
	if string(pair[0]) != "1" {
		return nil, &Error{fmt.Sprintf("Unknown protocol %s. Available protocols: [1]", pair[0])}
	}
	var raw rawSpec
	if err := json.Unmarshal(pair[1], &raw); err != nil {
		return nil, &Error{err.Error()}
	}
	return build(&raw, fields, 0)
}

func depthOf(s string) int {
	d, m := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '{':
			d++
			m = max(m, d)
		case ']', '}':
			d--
		}
	}
	return m
}

func build(r *rawSpec, fields map[string][]string, depth int) (*Spec, error) {
	if depth > maxDepth {
		return nil, &Error{fmt.Sprintf("nested more than %d deep", maxDepth)}
	}
	s := &Spec{Context: r.Context}
	if r.Type == nil {
		if len(r.Children) != 0 {
			return nil, &Error{"a leaf with children"}
		}
		s.leaves = 1
		return s, nil
	}
	if s.Type = *r.Type; s.Type == "" {
		return nil, &Error{"a type without a name"}
	}
	for i := range r.Children {
		c, err := build(&r.Children[i], fields, depth+1)
		if err != nil {
			return nil, err
		}
		s.Children = append(s.Children, c)
		s.leaves += c.leaves
	}
	s.keys = s.childKeys(fields)
	if len(s.keys) != len(s.Children) {
		return nil, &Error{fmt.Sprintf("%s has %d keys for %d children", s.Type, len(s.keys), len(s.Children))}
	}
	return s, nil
}

// KeyNames lists the keys of the children of a dict, or the names of the fields, as text.
func (s *Spec) KeyNames() []string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		if names[i] = k.Name; k.Kind == IntMapKey || k.Kind == SeqKey {
			names[i] = strconv.FormatInt(k.Num, 10)
		}
	}
	return names
}

// inner gives the context, which is JSON inside a string for most types.
func (s *Spec) inner() []byte {
	var text string
	if json.Unmarshal(s.Context, &text) == nil {
		return []byte(text)
	}
	return s.Context
}

func (s *Spec) childKeys(fields map[string][]string) []Key {
	switch s.Type {
	case "builtins.dict", "collections.OrderedDict", "torch.fx.immutable_collections.immutable_dict":
		return mapKeys(s.inner())
	case "collections.defaultdict":
		var c struct {
			Dict json.RawMessage `json:"dict_context"`
		}
		if json.Unmarshal(s.inner(), &c) == nil && c.Dict != nil {
			return mapKeys(c.Dict)
		}
	case "collections.namedtuple":
		if names := tupleFields(s, fields); len(names) == len(s.Children) {
			return attrKeys(names)
		}
	default:
		var parts [][]*string
		if json.Unmarshal(s.inner(), &parts) == nil && len(parts) == 2 && len(parts[0]) == len(s.Children) {
			names := make([]string, len(parts[0]))
			for i, n := range parts[0] {
				if n != nil {
					names[i] = *n
				}
			}
			for _, n := range parts[1] {
				if n != nil {
					s.none = append(s.none, *n)
				}
			}
			return attrKeys(names)
		}
		// transformers' ModelOutput and its like: a list of the names of what is there
		var names []string
		if json.Unmarshal(s.inner(), &names) == nil && len(names) > 0 && len(names) == len(s.Children) && distinct(names) {
			return attrKeys(names)
		}
	}
	keys := make([]Key, len(s.Children))
	for i := range keys {
		keys[i] = Key{Kind: SeqKey, Num: int64(i)}
	}
	return keys
}

func distinct(names []string) bool {
	seen := map[string]bool{}
	for _, n := range names {
		if n == "" || seen[n] {
			return false
		}
		seen[n] = true
	}
	return true
}

func tupleFields(s *Spec, fields map[string][]string) []string {
	var name string
	if json.Unmarshal(s.Context, &name) == nil {
		return fields[name]
	}
	var old struct {
		Fields []string `json:"fields"`
	}
	json.Unmarshal(s.Context, &old)
	return old.Fields
}

func attrKeys(names []string) []Key {
	keys := make([]Key, len(names))
	for i, n := range names {
		keys[i] = Key{Kind: AttrKey, Name: n}
	}
	return keys
}

func mapKeys(b []byte) []Key {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var raw []any
	if d.Decode(&raw) != nil {
		return nil
	}
	keys := make([]Key, len(raw))
	for i, k := range raw {
		keys[i] = mapKey(k)
	}
	return keys
}

// mapKey is the key of a dict by its JSON form; a tuple is a list there, an enum an object.
func mapKey(k any) Key {
	switch k := k.(type) {
	case string:
		return Key{Kind: MapKey, Name: k}
	case json.Number:
		if n, err := k.Int64(); err == nil {
			return Key{Kind: IntMapKey, Num: n}
		}
	case []any:
		t := pyRepr(k)
		if t = t[1 : len(t)-1]; len(k) == 1 {
			t += ","
		}
		return Key{Kind: OtherKey, Name: "(" + t + ")"}
	}
	return Key{Kind: OtherKey, Name: pyRepr(k)}
}

// IsLeaf reports a leaf.
func (s *Spec) IsLeaf() bool { return s.Type == "" }

// Keys are the steps to the children, in order.
func (s *Spec) Keys() []Key { return s.keys }

// NumLeaves counts the leaves.
func (s *Spec) NumLeaves() int { return s.leaves }

// Paths gives the path to every leaf, in order.
func (s *Spec) Paths() [][]Key {
	var out [][]Key
	s.walk(nil, func(p []Key) { out = append(out, append([]Key(nil), p...)) })
	return out
}

func (s *Spec) walk(path []Key, f func([]Key)) {
	if s.IsLeaf() {
		f(path)
		return
	}
	for i, c := range s.Children {
		c.walk(append(path, s.keys[i]), f)
	}
}
