package pytree

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// Registry knows Go structs that stand for Python dataclasses. A nil Registry knows none.
type Registry struct {
	names map[reflect.Type]string
}

// RegisterStruct lets the struct T stand for the dataclass with this serialized name; see [Spec.Flatten] for its fields.
// Fields that are nil pointers, interfaces, maps or slices are the None fields, which are part of the structure. Registering
// a type again replaces its name.
func RegisterStruct[T any](r *Registry, serializedName string) error {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() != reflect.Struct:
		return &Error{fmt.Sprintf("Only dataclasses can be registered with this function: %v is no struct", t)}
	case serializedName == "":
		return &Error{fmt.Sprintf("No registered serialization name for %v: give the name that the archive is to hold", t)}
	}
	if r.names == nil {
		r.names = map[reflect.Type]string{}
	}
	r.names[t] = serializedName
	return nil
}

// Flatten takes a value apart: its leaves, and the structure to build it again. A Go slice is a list, a map with string or
// integer keys is a dict in the order of its keys, a struct must be registered.
func (r *Registry) Flatten(v any) ([]any, *Spec, error) {
	w := writer{reg: r}
	s, err := w.node(reflect.ValueOf(v), 0)
	return w.out, s, err
}

// specOf is the structure of a value for messages; structs count as dicts by field names. It is nil if there is none.
func (c *Codec) specOf(v any) *Spec {
	w := writer{lax: true, codec: c}
	s, err := w.node(reflect.ValueOf(v), 0)
	if err != nil {
		return nil
	}
	return s
}

type writer struct {
	reg   *Registry
	lax   bool
	codec *Codec
	out   []any
}

func (w *writer) node(v reflect.Value, depth int) (*Spec, error) {
	if depth > maxDepth {
		return nil, &Error{fmt.Sprintf("nested more than %d deep", maxDepth)}
	}
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	inner := indirect(v)
	switch {
	case !inner.IsValid():
	case inner.Type() == typeOfTuple:
		return w.sequence(typeTuple, inner, depth)
	case inner.Type() == typeOfDict || inner.Type() == typeOfOrderedDict:
		return w.dict(inner, depth)
	case inner.Type() == typeOfNamedTuple:
		t := inner.Interface().(NamedTuple)
		return w.build(&Spec{Type: typeNamedTuple, Context: quoted(t.Type)}, attrKeys(t.Fields), reflect.ValueOf(t.Values), depth)
	case inner.Type() == typeOfNode:
		t := inner.Interface().(Node)
		s := &Spec{Type: t.Type, Context: t.Context}
		keys := attrKeys(t.Fields)
		if t.Fields == nil {
			keys = seqKeys(len(t.Children))
		}
		return w.build(s, keys, reflect.ValueOf(t.Children), depth)
	case w.codec != nil && w.codec.isLeaf(inner):
		w.out = append(w.out, nil)
		return &Spec{leaves: 1}, nil
	case inner.Kind() == reflect.Slice || inner.Kind() == reflect.Array:
		return w.sequence(typeList, inner, depth)
	case inner.Kind() == reflect.Map:
		return w.mapping(inner, depth)
	case isStruct(inner) && (w.name(inner.Type()) != "" || w.lax && len(fieldsOf(inner.Type())) > 0 && v.Kind() == reflect.Struct):
		return w.structure(inner, depth)
	}
	x, ok := leafValue(v)
	if !ok {
		return nil, &Error{fmt.Sprintf("%v is neither a leaf nor a container", v.Type())}
	}
	w.out = append(w.out, x)
	return &Spec{leaves: 1}, nil
}

func (w *writer) name(t reflect.Type) string {
	if w.reg == nil {
		return ""
	}
	return w.reg.names[t]
}

func quoted(s string) []byte {
	var b strings.Builder
	encodeString(&b, s)
	return []byte(b.String())
}

func seqKeys(n int) []Key {
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key{Kind: SeqKey, Num: int64(i)}
	}
	return keys
}

func (w *writer) sequence(typ string, v reflect.Value, depth int) (*Spec, error) {
	return w.build(&Spec{Type: typ, Context: contextOf("null")}, seqKeys(v.Len()), v, depth)
}

// build flattens the elements of a slice as children.
func (w *writer) build(s *Spec, keys []Key, v reflect.Value, depth int) (*Spec, error) {
	if len(keys) != v.Len() {
		return nil, &Error{fmt.Sprintf("%s has %d fields for %d values", s.Type, len(keys), v.Len())}
	}
	s.keys = keys
	for i := range v.Len() {
		if err := w.child(s, v.Index(i), depth); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (w *writer) child(s *Spec, v reflect.Value, depth int) error {
	c, err := w.node(v, depth+1)
	if err != nil {
		return err
	}
	s.Children = append(s.Children, c)
	s.leaves += c.leaves
	return nil
}

func (w *writer) dict(v reflect.Value, depth int) (*Spec, error) {
	d := v.Convert(typeOfDict).Interface().(Dict)
	s := &Spec{Type: typeDict}
	if v.Type() == typeOfOrderedDict {
		s.Type = typeOrderedDict
	}
	for _, e := range d {
		k := Key{Kind: MapKey}
		switch x := reflect.ValueOf(e.Key); {
		case x.IsValid() && x.Kind() == reflect.String:
			k.Name = x.String()
		case x.IsValid() && x.CanInt():
			k = Key{Kind: IntMapKey, Num: x.Int()}
		default:
			return nil, &Error{fmt.Sprintf("a dict key must be a string or an integer, got %T", e.Key)}
		}
		s.keys = append(s.keys, k)
		if err := w.child(s, reflect.ValueOf(e.Value), depth); err != nil {
			return nil, err
		}
	}
	var err error
	s.Context, err = keyContext(s.keys)
	return s, err
}

// mapping takes the entries of a Go map in the order of the keys.
func (w *writer) mapping(v reflect.Value, depth int) (*Spec, error) {
	var d Dict
	for _, k := range v.MapKeys() {
		x := indirect(k)
		switch {
		case x.IsValid() && x.Kind() == reflect.String:
			d = append(d, Entry{x.String(), v.MapIndex(k).Interface()})
		case x.IsValid() && x.CanInt():
			d = append(d, Entry{x.Int(), v.MapIndex(k).Interface()})
		default:
			return nil, &Error{fmt.Sprintf("a dict key must be a string or an integer, got %v", k.Type())}
		}
	}
	sort.Slice(d, func(i, j int) bool {
		a, aInt := d[i].Key.(int64)
		b, bInt := d[j].Key.(int64)
		if aInt && bInt {
			return a < b
		}
		return fmt.Sprint(d[i].Key) < fmt.Sprint(d[j].Key)
	})
	return w.dict(reflect.ValueOf(d), depth)
}

// structure writes a registered struct as its dataclass; in messages an unregistered one is a dict.
func (w *writer) structure(v reflect.Value, depth int) (*Spec, error) {
	s := &Spec{Type: w.name(v.Type())}
	kind := AttrKey
	if s.Type == "" {
		s.Type, kind = typeDict, MapKey
	}
	for _, f := range fieldsOf(v.Type()) {
		x := v.Field(f.index)
		if isNil(x) && kind == AttrKey {
			s.none = append(s.none, f.name)
			continue
		}
		s.keys = append(s.keys, Key{Kind: kind, Name: f.name})
		if err := w.child(s, x, depth); err != nil {
			return nil, err
		}
	}
	if kind == MapKey {
		var err error
		s.Context, err = keyContext(s.keys)
		return s, err
	}
	var b strings.Builder
	writeNames := func(names []string) {
		b.WriteByte('[')
		for i, n := range names {
			if i > 0 {
				b.WriteString(", ")
			}
			encodeString(&b, n)
		}
		b.WriteByte(']')
	}
	b.WriteByte('[')
	writeNames(s.fieldNames())
	b.WriteString(", ")
	writeNames(s.none)
	b.WriteByte(']')
	s.Context = contextOf(b.String())
	return s, nil
}
