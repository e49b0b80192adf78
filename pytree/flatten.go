package pytree

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Flatten gives the leaves of v in the order of s. v is made of this package's values, or of Go's own:
//
//   - a tuple or list is a [Tuple], [List], slice, array, or a struct whose fields stand in order;
//   - a dict is a [Dict] in any order, a map, or a struct with a field for each key;
//   - a named tuple or dataclass is a [NamedTuple], a *[Node], a struct or a map by field names, or a slice in order.
//
// Struct fields are found by the tag pt2:"name", else by their Go name (InputIDs for input_ids). Go's integers become int64
// leaves, its floats float64; nil pointers become nil. A value of another structure is a *[MismatchError] with its place.
func (s *Spec) Flatten(v any) ([]any, error) {
	var c Codec
	f := c.flattener(s)
	if err := f.node(s, reflect.ValueOf(v)); err != nil {
		return nil, f.explain(err, s, v)
	}
	return f.out, nil
}

func (c *Codec) flattener(s *Spec) *flattener {
	return &flattener{codec: c, out: make([]any, 0, s.leaves)}
}

// explain adds the structures that were wanted and given, unless a leaf is at fault.
func (f *flattener) explain(err *MismatchError, want *Spec, got any) *MismatchError {
	if err.Err == nil {
		err.Want, err.Got = want, f.codec.specOf(got)
	}
	return err
}

// FlattenCall gives the leaves of a call with positional arguments and keyword arguments. s is a program's in_spec, a tuple of
// (args, kwargs). kwargs is a [Dict], a map, a struct or nil; its order does not matter.
func (s *Spec) FlattenCall(args []any, kwargs any) ([]any, error) {
	var c Codec
	return c.FlattenCall(s, args, kwargs)
}

// FlattenCall is [Spec.FlattenCall] with c's leaves.
func (c *Codec) FlattenCall(s *Spec, args []any, kwargs any) ([]any, error) {
	if !s.IsCall() {
		return nil, &MismatchError{Reason: "the spec is not one of a call, (args, kwargs)", Want: s}
	}
	if kwargs == nil {
		kwargs = Dict{}
	}
	f := c.flattener(s)
	err := f.node(s.Children[0], reflect.ValueOf(Tuple(args)))
	if err == nil {
		err = f.callKeywords(s.Children[1], reflect.ValueOf(kwargs))
	}
	if err != nil {
		return nil, f.explain(err, s, Tuple{Tuple(args), kwargs})
	}
	return f.out, nil
}

// FlattenRequest gives the leaves of a call from one Go value: a struct or map with a field for each parameter, whether it
// was positional or a keyword; a [Tuple], slice or array of the positional arguments; or else the only argument. names are
// the names of the positional parameters (the program's forward_arg_names).
func (s *Spec) FlattenRequest(req any, names []string) ([]any, error) {
	var c Codec
	return c.FlattenRequest(s, req, names)
}

// FlattenRequest is [Spec.FlattenRequest] with c's leaves.
func (c *Codec) FlattenRequest(s *Spec, req any, names []string) ([]any, error) {
	if !s.IsCall() {
		return nil, &MismatchError{Reason: "the spec is not one of a call, (args, kwargs)", Want: s}
	}
	args, kwargs := s.Children[0], s.Children[1]
	v := indirect(reflect.ValueOf(req))
	one := len(args.Children) == 1 && len(kwargs.Children) == 0 && args.Children[0].IsLeaf()
	switch {
	case one && c.isLeaf(v):
		return c.FlattenCall(s, []any{req}, nil)
	case one && (!v.IsValid() || v.Kind() != reflect.Map && !isList(v)) && !(v.IsValid() && isStruct(v) && hasParam(v, names)):
		return c.FlattenCall(s, []any{req}, nil)
	case v.IsValid() && (v.Kind() == reflect.Map || isStruct(v) || v.Type() == typeOfDict):
		return c.flattenNamed(s, v, names)
	case v.IsValid() && isList(v):
		list := make([]any, v.Len())
		for i := range list {
			list[i] = v.Index(i).Interface()
		}
		return c.FlattenCall(s, list, nil)
	}
	return c.FlattenCall(s, []any{req}, nil)
}

// isList reports a slice or array that is no dict.
func isList(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Type() != typeOfDict && v.Type() != typeOfOrderedDict
}

func hasParam(v reflect.Value, names []string) bool {
	return len(names) > 0 && findField(fieldsOf(v.Type()), names[0]) >= 0
}

// flattenNamed finds every parameter by name.
func (c *Codec) flattenNamed(s *Spec, v reflect.Value, names []string) ([]any, error) {
	args, kwargs := s.Children[0], s.Children[1]
	f := c.flattener(s)
	get, err := f.lookup(v)
	if err != nil {
		return nil, err
	}
	fail := func(err *MismatchError) ([]any, error) {
		if err.Err == nil {
			err.Want = s
		}
		return nil, err
	}
	used := 0
	for i, arg := range args.Children {
		name := "args[" + strconv.Itoa(i) + "]"
		if i < len(names) {
			name = names[i]
		}
		x, ok := get(Key{Kind: MapKey, Name: name})
		if !ok {
			if x, ok = variadic(get, name); !ok {
				return fail(&MismatchError{Reason: fmt.Sprintf("the parameter %q is missing", name)})
			}
		}
		used++
		f.path = append(f.path[:0], name)
		if err := f.node(arg, x); err != nil {
			return fail(err)
		}
	}
	for i, k := range kwargs.keys {
		x, ok := get(k)
		if !ok {
			return fail(&MismatchError{Reason: fmt.Sprintf("the keyword parameter %q is missing", k.Name)})
		}
		used++
		f.path = append(f.path[:0], k.Name)
		if err := f.node(kwargs.Children[i], x); err != nil {
			return fail(err)
		}
	}
	if n := mapLen(v); n > used {
		return fail(&MismatchError{Reason: fmt.Sprintf("got %d parameters, want %d: %q and %s", n, used, names, keyList(kwargs.keys))})
	}
	return f.out, nil
}

// variadic finds args_1 as element 1 of a field args.
func variadic(get func(Key) (reflect.Value, bool), name string) (reflect.Value, bool) {
	i := strings.LastIndexByte(name, '_')
	if i <= 0 {
		return reflect.Value{}, false
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil {
		return reflect.Value{}, false
	}
	v, ok := get(Key{Kind: MapKey, Name: name[:i]})
	if v = indirect(v); !ok || !v.IsValid() || v.Kind() != reflect.Slice || n >= v.Len() {
		return reflect.Value{}, false
	}
	return v.Index(n), true
}

// IsCall reports the form of an in_spec: a tuple of a tuple and a dict.
func (s *Spec) IsCall() bool {
	return s.Type == typeTuple && len(s.Children) == 2 && s.Children[0].Type == typeTuple && s.Children[1].Type == typeDict
}

type flattener struct {
	codec *Codec
	out   []any
	path  []string
}

func (f *flattener) fail(format string, args ...any) *MismatchError {
	return &MismatchError{Path: strings.Join(f.path, ""), Reason: fmt.Sprintf(format, args...)}
}

// indirect follows pointers and interfaces to a container; nil gives the zero Value.
func indirect(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	return v
}

func (f *flattener) node(s *Spec, v reflect.Value) *MismatchError {
	if s.IsLeaf() {
		x, err := f.encode(v)
		if err != nil {
			return err
		}
		f.out = append(f.out, x)
		return nil
	}
	v = indirect(v)
	if !v.IsValid() {
		return f.fail("want %s, got nil", s.kind())
	}
	switch {
	case s.isMap():
		return f.mapping(s, v)
	case s.Type == typeNamedTuple || s.fieldNames() != nil || s.none != nil:
		return f.record(s, v)
	}
	return f.sequence(s, v)
}

func (f *flattener) children(s *Spec, get func(i int) (reflect.Value, bool)) *MismatchError {
	for i, c := range s.Children {
		x, ok := get(i)
		if !ok {
			return f.fail("%s is missing", s.keys[i])
		}
		f.path = append(f.path, s.keys[i].String())
		if err := f.node(c, x); err != nil {
			return err
		}
		f.path = f.path[:len(f.path)-1]
	}
	return nil
}

func (f *flattener) sequence(s *Spec, v reflect.Value) *MismatchError {
	want := plainType(s.Type)
	n, get := 0, v.Index
	switch {
	case v.Type() == typeOfDict || v.Type() == typeOfOrderedDict,
		v.Type() == typeOfTuple && want == typeList, v.Type() == typeOfList && want == typeTuple:
		return f.fail("want %s, got %s", s.kind(), describe(v))
	case v.Type() == typeOfNode:
		node := v.Interface().(Node)
		if node.Type != s.Type {
			return f.fail("want %s, got %s", s.kind(), node.Type)
		}
		v = reflect.ValueOf(node.Children)
		n, get = v.Len(), v.Index
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		n = v.Len()
	case isStruct(v):
		fields := fieldsOf(v.Type())
		n, get = len(fields), func(i int) reflect.Value { return v.Field(fields[i].index) }
	default:
		return f.fail("want %s, got %s", s.kind(), describe(v))
	}
	if n != len(s.Children) {
		return f.fail("want %s of %d, got %d elements", s.kind(), len(s.Children), n)
	}
	return f.children(s, func(i int) (reflect.Value, bool) { return get(i), true })
}

func (f *flattener) mapping(s *Spec, v reflect.Value) *MismatchError {
	if v.Type() == typeOfOrderedDict && s.Type != typeOrderedDict || v.Type() == typeOfDict && s.Type == typeOrderedDict {
		return f.fail("want %s, got %s", s.kind(), describe(v))
	}
	return f.keywords(s, v)
}

// keywords is mapping without regard to the kind of dict.
func (f *flattener) keywords(s *Spec, v reflect.Value) *MismatchError {
	v = indirect(v)
	if !v.IsValid() {
		return f.fail("want %s, got nil", s.kind())
	}
	get, err := f.lookup(v)
	if err != nil {
		return err
	}
	if n := mapLen(v); n > len(s.keys) {
		return f.fail("want %s with the keys %s, got %d keys", s.kind(), keyList(s.keys), n)
	}
	return f.children(s, func(i int) (reflect.Value, bool) { return get(s.keys[i]) })
}

// callKeywords is keywords with PyTorch's message for a keyword that is missing or not known.
func (f *flattener) callKeywords(s *Spec, v reflect.Value) *MismatchError {
	if got := f.codec.specOf(v.Interface()); got != nil && got.isMap() && !isStruct(indirect(v)) {
		same := len(got.keys) == len(s.keys)
		for _, k := range s.keys {
			same = same && got.child(k) >= 0
		}
		if !same {
			return f.fail("Ran into a kwarg keyword mismatch: Got the following keywords %s but expected %s", keyList(got.keys), keyList(s.keys))
		}
	}
	return f.keywords(s, v)
}

// lookup gives access by key to a Dict, a map or a struct.
func (f *flattener) lookup(v reflect.Value) (func(Key) (reflect.Value, bool), *MismatchError) {
	switch {
	case v.Type() == typeOfDict || v.Type() == typeOfOrderedDict:
		d := v.Convert(typeOfDict).Interface().(Dict)
		return func(k Key) (reflect.Value, bool) {
			for _, e := range d {
				if matches(k, e.Key) {
					return reflect.ValueOf(e.Value), true
				}
			}
			return reflect.Value{}, false
		}, nil
	case v.Kind() == reflect.Map:
		kt := v.Type().Key()
		return func(k Key) (reflect.Value, bool) {
			x := reflect.Value{}
			switch {
			case kt.Kind() == reflect.String && k.Kind != IntMapKey:
				x = v.MapIndex(reflect.ValueOf(k.Name).Convert(kt))
			case k.Kind == IntMapKey && isInt(kt.Kind()):
				x = v.MapIndex(reflect.ValueOf(k.Num).Convert(kt))
			case kt.Kind() == reflect.Interface:
				x = v.MapIndex(reflect.ValueOf(k.value()))
			}
			return x, x.IsValid()
		}, nil
	case isStruct(v):
		fields := fieldsOf(v.Type())
		return func(k Key) (reflect.Value, bool) {
			i := findField(fields, k.Name)
			if i < 0 {
				return reflect.Value{}, false
			}
			return v.Field(fields[i].index), true
		}, nil
	}
	return nil, f.fail("want a dict, map or struct, got %s", describe(v))
}

func matches(k Key, v any) bool {
	if s, ok := v.(string); ok {
		return k.Kind != IntMapKey && k.Name == s
	}
	x := reflect.ValueOf(v)
	return k.Kind == IntMapKey && x.IsValid() && x.CanInt() && x.Int() == k.Num
}

// mapLen counts the entries of a dict; a struct may have more fields than the program has keys.
func mapLen(v reflect.Value) int {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len()
	}
	return 0
}

// record flattens a named tuple or a dataclass.
func (f *flattener) record(s *Spec, v reflect.Value) *MismatchError {
	switch {
	case v.Type() == typeOfNamedTuple:
		t := v.Interface().(NamedTuple)
		if s.Type != typeNamedTuple || len(t.Values) != len(s.Children) {
			return f.fail("want %s of %d fields, got a named tuple of %d", s.kind(), len(s.Children), len(t.Values))
		}
		return f.children(s, func(i int) (reflect.Value, bool) { return reflect.ValueOf(t.Values[i]), true })
	case v.Type() == typeOfNode || v.Kind() == reflect.Slice && v.Type() != typeOfDict && v.Type() != typeOfOrderedDict || v.Kind() == reflect.Array:
		return f.sequence(s, v)
	}
	get, err := f.lookup(v)
	if err != nil {
		return err
	}
	for _, name := range s.none {
		if x, ok := get(Key{Kind: AttrKey, Name: name}); ok && !isNil(x) {
			return f.fail("the field %s was None when the program was exported and must stay nil", name)
		}
	}
	for _, k := range s.keys {
		if x, ok := get(k); s.none != nil && ok && isNil(x) {
			return f.fail("the field %s was not None when the program was exported, got nil", k.Name)
		}
	}
	return f.children(s, func(i int) (reflect.Value, bool) { return get(s.keys[i]) })
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// leafValue gives a leaf as the runtime takes it; containers of this package are no leaves.
func leafValue(v reflect.Value) (any, bool) {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch k := v.Kind(); {
	case !v.IsValid():
		return nil, true
	case k == reflect.Bool:
		return v.Bool(), true
	case isInt(k):
		if v.CanInt() {
			return v.Int(), true
		}
		if v.Uint() > math.MaxInt64 {
			return nil, false
		}
		return int64(v.Uint()), true
	case k == reflect.Float32 || k == reflect.Float64:
		return v.Float(), true
	case k == reflect.String:
		return v.String(), true
	case k == reflect.Pointer && v.IsNil():
		return nil, true
	case k == reflect.Pointer && v.Elem().Kind() < reflect.Array:
		return leafValue(v.Elem())
	case k == reflect.Map, k == reflect.Slice, k == reflect.Array, v.Type() == reflect.PointerTo(typeOfNode), v.Type() == typeOfNamedTuple:
		return nil, false
	}
	return v.Interface(), true
}

func isInt(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uintptr }

// kind names what a spec wants.
func (s *Spec) kind() string {
	switch s.Type {
	case typeTuple, typeList, typeDict:
		return "a " + s.Type[len("builtins."):]
	case typeNamedTuple:
		return "the named tuple " + s.className()
	}
	return s.Type
}

// describe names what a Go value is.
func describe(v reflect.Value) string {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return "nil"
	case v.Type() == typeOfTuple:
		return "a tuple"
	case v.Type() == typeOfList:
		return "a list"
	case v.Type() == typeOfDict:
		return "a dict"
	}
	return v.Type().String()
}
