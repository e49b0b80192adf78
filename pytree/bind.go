package pytree

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Bind fills dst, a pointer, from the leaves of a value with the structure s. It is the reverse of [Spec.Flatten]:
//
//   - an interface takes what [Spec.Unflatten] gives;
//   - a tuple or list goes into a slice, an array of its length, or a struct with as many fields, in order;
//   - a dict goes into a map or a struct, a named tuple or dataclass also into a slice;
//   - a leaf goes into a variable of its type; numbers go into any numeric type that holds their value, nil into a pointer.
//
// A single leaf also goes into a struct with one field. Fields of a struct that no key names keep their values. What does not
// fit is a *[MismatchError]; then dst may be partly filled.
func (s *Spec) Bind(leaves []any, dst any) error {
	var c Codec
	return c.Bind(s, leaves, dst)
}

// Bind is [Spec.Bind] with c's leaves.
func (c *Codec) Bind(s *Spec, leaves []any, dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return &MismatchError{Reason: fmt.Sprintf("the destination must be a pointer that is not nil, got %T", dst)}
	}
	if len(leaves) != s.leaves {
		return &MismatchError{Reason: fmt.Sprintf("want %d leaves, got %d", s.leaves, len(leaves)), Want: s}
	}
	b := binder{codec: c, leaves: leaves}
	v = v.Elem()
	if s.IsLeaf() && isStruct(v) {
		if f := fieldsOf(v.Type()); len(f) == 1 && !canHold(v.Type(), leaves[0]) {
			v = v.Field(f[0].index)
		}
	}
	if err := b.node(s, v); err != nil {
		if err.Err == nil {
			err.Want = s
		}
		return err
	}
	return nil
}

func canHold(t reflect.Type, leaf any) bool {
	return leaf != nil && reflect.TypeOf(leaf).AssignableTo(t)
}

type binder struct {
	codec  *Codec
	leaves []any
	next   int
	path   []string
}

func (b *binder) fail(format string, args ...any) *MismatchError {
	return &MismatchError{Path: strings.Join(b.path, ""), Reason: fmt.Sprintf(format, args...)}
}

func (b *binder) node(s *Spec, dst reflect.Value) *MismatchError {
	if s.IsLeaf() {
		x := b.leaves[0]
		b.leaves = b.leaves[1:]
		b.next++
		return b.leaf(x, dst)
	}
	switch dst.Type() {
	case typeOfTuple, typeOfList, typeOfDict, typeOfOrderedDict, typeOfNamedTuple, typeOfNode:
		return b.generic(s, dst)
	}
	switch dst.Kind() {
	case reflect.Interface:
		return b.generic(s, dst)
	case reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		return b.node(s, dst.Elem())
	case reflect.Slice:
		if s.isMap() {
			return b.fail("%s does not go into a %v", s.kind(), dst.Type())
		}
		dst.Set(reflect.MakeSlice(dst.Type(), len(s.Children), len(s.Children)))
		return b.children(s, dst.Index)
	case reflect.Array:
		if s.isMap() || dst.Len() != len(s.Children) {
			return b.fail("%s of %d does not go into a %v", s.kind(), len(s.Children), dst.Type())
		}
		return b.children(s, dst.Index)
	case reflect.Map:
		return b.intoMap(s, dst)
	case reflect.Struct:
		return b.intoStruct(s, dst)
	}
	return b.fail("%s does not go into a %v", s.kind(), dst.Type())
}

func (b *binder) generic(s *Spec, dst reflect.Value) *MismatchError {
	b.next += s.leaves
	x := reflect.ValueOf(s.unflatten(&b.leaves))
	if x.Kind() == reflect.Pointer && dst.Type() == typeOfNode {
		x = x.Elem()
	}
	if !x.Type().AssignableTo(dst.Type()) {
		return b.fail("%s does not go into a %v", s.kind(), dst.Type())
	}
	dst.Set(x)
	return nil
}

func (b *binder) children(s *Spec, get func(i int) reflect.Value) *MismatchError {
	for i, c := range s.Children {
		b.path = append(b.path, s.keys[i].String())
		if err := b.node(c, get(i)); err != nil {
			return err
		}
		b.path = b.path[:len(b.path)-1]
	}
	return nil
}

func (b *binder) intoMap(s *Spec, dst reflect.Value) *MismatchError {
	t := dst.Type()
	m := reflect.MakeMapWithSize(t, len(s.Children))
	for i, k := range s.keys {
		key := reflect.New(t.Key()).Elem()
		switch kind := t.Key().Kind(); {
		case kind == reflect.String && (k.Kind == MapKey || k.Kind == AttrKey):
			key.SetString(k.Name)
		case k.Kind == IntMapKey && kind >= reflect.Int && kind <= reflect.Int64 && !key.OverflowInt(k.Num):
			key.SetInt(k.Num)
		case kind == reflect.Interface && t.Key().NumMethod() == 0:
			key.Set(reflect.ValueOf(k.value()))
		default:
			return b.fail("the key %s does not go into a %v", k, t)
		}
		val := reflect.New(t.Elem()).Elem()
		b.path = append(b.path, k.String())
		if err := b.node(s.Children[i], val); err != nil {
			return err
		}
		b.path = b.path[:len(b.path)-1]
		m.SetMapIndex(key, val)
	}
	dst.Set(m)
	return nil
}

// intoStruct fills fields by name, or in order where the children have no names.
func (b *binder) intoStruct(s *Spec, dst reflect.Value) *MismatchError {
	fields := fieldsOf(dst.Type())
	if !s.isMap() && s.fieldNames() == nil && s.Type != typeNamedTuple {
		if len(fields) != len(s.Children) {
			return b.fail("%s of %d does not go into %v with %d fields", s.kind(), len(s.Children), dst.Type(), len(fields))
		}
		return b.children(s, func(i int) reflect.Value { return dst.Field(fields[i].index) })
	}
	index := make([]int, len(s.keys))
	for i, k := range s.keys {
		if index[i] = findField(fields, k.Name); index[i] < 0 || k.Kind == IntMapKey {
			return b.fail("%v has no field for %s; give one the tag `pt2:%q`", dst.Type(), k, k.Name)
		}
	}
	return b.children(s, func(i int) reflect.Value { return dst.Field(fields[index[i]].index) })
}

// leaf stores one leaf.
func (b *binder) leaf(x any, dst reflect.Value) *MismatchError {
	if x == nil {
		switch dst.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
			dst.SetZero()
			return nil
		}
		return b.fail("None does not go into a %v", dst.Type())
	}
	v := reflect.ValueOf(x)
	if v.Type().AssignableTo(dst.Type()) {
		dst.Set(v)
		return nil
	}
	if dst.Kind() == reflect.Pointer && (dst.Type().Elem().Kind() < reflect.Array || b.codec.isLeaf(reflect.Zero(dst.Type().Elem()))) {
		p := reflect.New(dst.Type().Elem())
		if err := b.leaf(x, p.Elem()); err != nil {
			return err
		}
		dst.Set(p)
		return nil
	}
	if b.codec.Decode != nil && dst.CanAddr() {
		switch err := b.codec.Decode(b.next-1, x, dst.Addr().Interface()); {
		case err == nil:
			return nil
		case !errors.Is(err, ErrUseDefault):
			e := b.fail("%v", err)
			e.Err = err
			return e
		}
	}
	if !store(v, dst) {
		return b.fail("%v (%T) does not go into a %v", x, x, dst.Type())
	}
	return nil
}

// store converts numbers, strings and bools without loss; integers become floats if they are exact.
func store(v, dst reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Bool && dst.Kind() == reflect.Bool:
		dst.SetBool(v.Bool())
	case v.Kind() == reflect.String && dst.Kind() == reflect.String:
		dst.SetString(v.String())
	case v.CanInt() && dst.CanInt() && !dst.OverflowInt(v.Int()):
		dst.SetInt(v.Int())
	case v.CanInt() && dst.CanUint() && v.Int() >= 0 && !dst.OverflowUint(uint64(v.Int())):
		dst.SetUint(uint64(v.Int()))
	case v.CanInt() && dst.CanFloat() && v.Int() >= -1<<53 && v.Int() <= 1<<53:
		dst.SetFloat(float64(v.Int()))
	case v.CanFloat() && dst.CanFloat():
		dst.SetFloat(v.Float())
	default:
		return false
	}
	return true
}
