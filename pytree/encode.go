package pytree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Encode writes the spec as an archive holds it (protocol 1), character by character as PyTorch does. Contexts are written
// as they were read.
func (s *Spec) Encode() string {
	var b strings.Builder
	b.WriteString("[1, ")
	s.encode(&b)
	b.WriteString("]")
	return b.String()
}

func (s *Spec) encode(b *strings.Builder) {
	b.WriteString(`{"type": `)
	if s.IsLeaf() {
		b.WriteString("null")
	} else {
		encodeString(b, s.Type)
	}
	b.WriteString(`, "context": `)
	if len(s.Context) == 0 {
		b.WriteString("null")
	} else {
		b.Write(s.Context)
	}
	b.WriteString(`, "children_spec": [`)
	for i, c := range s.Children {
		if i > 0 {
			b.WriteString(", ")
		}
		c.encode(b)
	}
	b.WriteString("]}")
}

// encodeString writes a JSON string in ASCII, as Python's json does.
func encodeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r >= 0x10000:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, hi, lo)
		case r < 0x20 || r >= 0x7f:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// contextOf is JSON inside a JSON string, the form of most contexts.
func contextOf(inner string) json.RawMessage {
	var b strings.Builder
	encodeString(&b, inner)
	return json.RawMessage(b.String())
}

// keyContext is the context of a dict with these keys.
func keyContext(keys []Key) (json.RawMessage, error) {
	var b strings.Builder
	b.WriteByte('[')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		switch k.Kind {
		case MapKey:
			encodeString(&b, k.Name)
		case IntMapKey:
			fmt.Fprint(&b, k.Num)
		default:
			return nil, &Error{"a dict with the key " + k.String() + " has no serialized form here"}
		}
	}
	b.WriteByte(']')
	return contextOf(b.String()), nil
}

// Equal reports that both describe the same structure. As in PyTorch's check of a call, a torch.Size counts as a tuple, an
// immutable container as its plain form, and the order of a dict's keys does not matter.
func (s *Spec) Equal(o *Spec) bool {
	if plainType(s.Type) != plainType(o.Type) || len(s.Children) != len(o.Children) {
		return false
	}
	if s.IsLeaf() {
		return true
	}
	if s.isMap() {
		for i, k := range s.keys {
			j := o.child(k)
			if j < 0 || !s.Children[i].Equal(o.Children[j]) {
				return false
			}
		}
		return true
	}
	if s.Type == o.Type && !sameContext(s.inner(), o.inner()) {
		return false
	}
	for i, c := range s.Children {
		if !c.Equal(o.Children[i]) {
			return false
		}
	}
	return true
}

func sameContext(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// child finds the child under a key, -1 if there is none.
func (s *Spec) child(k Key) int {
	for i, own := range s.keys {
		if own == k {
			return i
		}
	}
	return -1
}

func plainType(t string) string {
	switch t {
	case "torch.Size":
		return typeTuple
	case "torch.fx.immutable_collections.immutable_list":
		return typeList
	case "torch.fx.immutable_collections.immutable_dict":
		return typeDict
	}
	return t
}

// The serialized names of Python's own containers.
const (
	typeTuple       = "builtins.tuple"
	typeList        = "builtins.list"
	typeDict        = "builtins.dict"
	typeOrderedDict = "collections.OrderedDict"
	typeDefaultDict = "collections.defaultdict"
	typeNamedTuple  = "collections.namedtuple"
)

// isMap reports a container with keys of its own: dict, OrderedDict, defaultdict.
func (s *Spec) isMap() bool {
	t := plainType(s.Type)
	return t == typeDict || t == typeOrderedDict || t == typeDefaultDict
}
