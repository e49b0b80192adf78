package tracer

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Example makes an example input of a tensor, for structs, slices and maps whose leaves are *[Tensor].
func Example(t *tensor.Tensor) *Tensor { return &Tensor{example: t} }

// call is a model with the arguments of one call.
type call struct {
	model  any
	fn     reflect.Value // Forward
	params []string      // its parameters
	args   []any
	kwargs pytree.Dict
	reg    *pytree.Registry

	spec   *pytree.Spec // of (args, kwargs)
	leaves []any        // *tensor.Tensor, int64, float64, bool, string or nil
	names  []string     // forward_arg_names: those of the arguments that are given
	input  []string     // names of the graph's inputs, by leaf
	paths  []string     // inputs['x'][0], by leaf
	places []string     // L['x'][0], by leaf
}

// newCall checks that the arguments are ones that Forward takes.
func newCall(model any, args []any, kwargs pytree.Dict, reg *pytree.Registry) (*call, error) {
	if model == nil || reflect.ValueOf(model).Kind() == reflect.Pointer && reflect.ValueOf(model).IsNil() {
		return nil, invalid("the model is nil")
	}
	if reg == nil {
		reg = &pytree.Registry{}
	}
	c := &call{model: model, fn: reflect.ValueOf(model).MethodByName("Forward"), args: args, kwargs: kwargs, reg: reg}
	if !c.fn.IsValid() {
		return nil, invalid("%T has no method Forward", model)
	}
	named, ok := model.(Named)
	if !ok {
		return nil, invalid("%T does not name its inputs: add a method InputNames() []string", model)
	}
	c.params = named.InputNames()
	if err := c.name(); err != nil {
		return nil, err
	}
	leaves, spec, err := reg.Flatten(pytree.Tuple{pytree.Tuple(args), kwargs})
	if err != nil {
		return nil, &UserError{Kind: InvalidInput, Msg: "the example inputs: " + err.Error(), Err: err}
	}
	c.spec = spec
	c.describe()
	for i, l := range leaves {
		x, err := c.leaf(i, l)
		if err != nil {
			return nil, err
		}
		c.leaves = append(c.leaves, x)
	}
	return c, nil
}

func (c *call) variadic() (name string, ok bool) {
	for _, p := range c.params {
		if strings.HasPrefix(p, "*") && !strings.HasPrefix(p, "**") {
			return p[1:], true
		}
	}
	return "", false
}

// name gives each argument its parameter's name.
func (c *call) name() error {
	var plain []string
	keywords := false
	for _, p := range c.params {
		switch {
		case strings.HasPrefix(p, "**"):
			keywords = true
		case !strings.HasPrefix(p, "*"):
			plain = append(plain, p)
		}
	}
	rest, variadic := c.variadic()
	for i, a := range c.args {
		switch {
		case i < len(plain):
			c.names = append(c.names, plain[i])
		case variadic:
			c.names = append(c.names, fmt.Sprintf("%s_%d", rest, i-len(plain)))
		default:
			return invalid("Forward takes the inputs %v, got %d examples", c.params, len(c.args))
		}
		if t, ok := a.(*tensor.Tensor); ok && t == nil {
			return invalid("the example for input %s is nil", c.names[i])
		}
	}
	given := map[string]bool{}
	for _, n := range c.names {
		given[n] = true
	}
	for _, e := range c.kwargs {
		k, ok := e.Key.(string)
		if !ok {
			return invalid("keywords must be strings, got %v", e.Key)
		}
		known := keywords
		for _, p := range plain {
			known = known || p == k
		}
		switch {
		case given[k]:
			return invalid("got multiple values for argument '%s'", k)
		case !known:
			return invalid("got an unexpected keyword argument '%s'; Forward takes %v", k, c.params)
		}
		given[k] = true
		c.names = append(c.names, k)
	}
	if !isModule(c.fn) && !c.fn.Type().IsVariadic() && c.fn.Type().NumIn() != len(c.params) {
		return invalid("%T's Forward has %d parameters, InputNames lists %v", c.model, c.fn.Type().NumIn(), c.params)
	}
	if len(c.args)+len(c.kwargs) < len(plain) {
		for i, p := range plain {
			if !given[p] && !c.optional(i) {
				return invalid("missing a required argument: '%s'; Forward takes the inputs %v, got %d examples", p, c.params, len(c.args)+len(c.kwargs))
			}
		}
	}
	return nil
}

// optional reports a parameter that may be left out: one whose type has a nil.
func (c *call) optional(i int) bool {
	if isModule(c.fn) {
		return len(c.kwargs) > 0
	}
	if i >= c.fn.Type().NumIn() {
		return true
	}
	switch t := c.fn.Type().In(i); t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return t != reflect.TypeFor[*Tensor]() || len(c.kwargs) > 0
	}
	return false
}

// isModule reports the signature of [Module].
func isModule(fn reflect.Value) bool {
	return fn.Type() == reflect.TypeFor[func(...*Tensor) []*Tensor]()
}

// describe names all leaves.
func (c *call) describe() {
	n := len(c.args)
	rest, _ := c.variadic()
	plain := 0
	for _, p := range c.params {
		if !strings.HasPrefix(p, "*") {
			plain++
		}
	}
	for _, path := range c.spec.Paths() {
		i, keys := 0, path[2:]
		if path[0].Num == 0 {
			i = int(path[1].Num)
		} else {
			for j, e := range c.kwargs {
				if e.Key == path[1].Name {
					i = n + j
				}
			}
		}
		place := "['" + c.names[i] + "']"
		if i >= plain && i < n {
			place = fmt.Sprintf("['%s'][%d]", rest, i-plain)
		} else if i >= n && !c.isParam(c.names[i]) {
			place = fmt.Sprintf("['%s']['%s']", c.keywordsName(), c.names[i])
		}
		name, rest := c.names[i], ""
		for _, k := range keys {
			name += "_" + notInName.ReplaceAllString(strings.Trim(k.String(), "[].'"), "_")
			rest += k.String()
		}
		c.input = append(c.input, strings.ToLower(notInName.ReplaceAllString(name, "_")))
		c.paths = append(c.paths, "inputs['"+c.names[i]+"']"+rest)
		c.places = append(c.places, "L"+place+rest)
	}
	seen := map[string]bool{}
	for i, name := range c.input {
		for k := 1; seen[c.input[i]]; k++ {
			c.input[i] = fmt.Sprintf("%s_%d", name, k)
		}
		seen[c.input[i]] = true
	}
}

func (c *call) isParam(name string) bool {
	for _, p := range c.params {
		if p == name {
			return true
		}
	}
	return false
}

func (c *call) keywordsName() string {
	for _, p := range c.params {
		if strings.HasPrefix(p, "**") {
			return p[2:]
		}
	}
	return "kwargs"
}

// leaf gives an example in the form of a program's inputs.
func (c *call) leaf(i int, x any) (any, error) {
	switch x := x.(type) {
	case nil, int64, float64, bool, string:
		return x, nil
	case symbolic.Int:
		if v, ok := x.Const(); ok {
			return v, nil
		}
	case *tensor.Tensor:
		if x == nil {
			return nil, nil
		}
		return x, nil
	case *Tensor:
		if x == nil {
			return nil, nil
		}
		if x.example != nil {
			return x.example, nil
		}
		if x.v != nil && x.v.T != nil {
			return x.v.T, nil
		}
	}
	return nil, invalid("Unsupported input type %T at %s. Export only supports pytree containers of basic types (Tensor, int, float, ...) as input. "+
		"To register a struct, use pytree.RegisterStruct and tracer.WithRegistry", x, c.paths[i])
}

// invoke calls Forward on leaves: *Tensor for tensors, symbolic.Int for free integers, else constants. It panics as Forward does.
func (c *call) invoke(leaves []any) any {
	var top []reflect.Value
	at := 0
	take := func(s *pytree.Spec, t reflect.Type, what string) reflect.Value {
		dst := reflect.New(t)
		codec := pytree.Codec{Decode: decodeInt}
		if err := codec.Bind(s, leaves[at:at+s.NumLeaves()], dst.Interface()); err != nil {
			panic(&UserError{Kind: InvalidInput, Msg: fmt.Sprintf("the input %s: %v", what, err), Err: err})
		}
		at += s.NumLeaves()
		return dst.Elem()
	}
	pos, kw := c.spec.Children[0].Children, c.spec.Children[1].Children
	if isModule(c.fn) {
		in := make([]*Tensor, len(c.params))
		last := 0
		for i, s := range append(append([]*pytree.Spec(nil), pos...), kw...) {
			k := i
			if i >= len(pos) {
				k = c.index(c.names[i])
			}
			for k >= len(in) {
				in = append(in, nil)
			}
			in[k] = take(s, reflect.TypeFor[*Tensor](), c.names[i]).Interface().(*Tensor)
			last = max(last, k+1)
		}
		out := c.model.(Module).Forward(in[:last]...)
		if len(out) == 1 {
			return out[0]
		}
		list := make(pytree.Tuple, len(out))
		for i, t := range out {
			list[i] = t
		}
		return list
	}
	t := c.fn.Type()
	fixed := t.NumIn()
	if t.IsVariadic() {
		fixed--
	}
	top = make([]reflect.Value, fixed)
	var more []reflect.Value
	for i, s := range pos {
		if i < fixed {
			top[i] = take(s, t.In(i), c.names[i])
		} else {
			more = append(more, take(s, t.In(fixed).Elem(), c.names[i]))
		}
	}
	rest := pytree.Dict{}
	for j, s := range kw {
		name := c.names[len(pos)+j]
		if k := c.index(name); k >= 0 {
			top[k] = take(s, t.In(k), name)
		} else {
			rest = append(rest, pytree.Entry{Key: name, Value: take(s, reflect.TypeFor[any](), name).Interface()})
		}
	}
	for k, p := range c.params {
		if strings.HasPrefix(p, "**") && k < fixed {
			top[k] = keywords(rest, t.In(k))
		}
	}
	for k := range top {
		if !top[k].IsValid() {
			top[k] = reflect.Zero(t.In(k))
		}
	}
	out := c.fn.Call(append(top, more...))
	if len(out) == 1 {
		return out[0].Interface()
	}
	list := make(pytree.Tuple, len(out))
	for i, v := range out {
		list[i] = v.Interface()
	}
	return list
}

// keywords gives **kwargs as the parameter's type wants them.
func keywords(d pytree.Dict, t reflect.Type) reflect.Value {
	if t.Kind() != reflect.Map {
		return reflect.ValueOf(d)
	}
	m := reflect.MakeMap(t)
	for _, e := range d {
		v := reflect.ValueOf(e.Value)
		if !v.IsValid() {
			v = reflect.Zero(t.Elem())
		}
		if !v.Type().AssignableTo(t.Elem()) {
			panic(invalid("the keyword %v does not go into a %v", e.Key, t))
		}
		m.SetMapIndex(reflect.ValueOf(e.Key), v)
	}
	return m
}

// index is the place of a named parameter.
func (c *call) index(name string) int {
	k := 0
	for _, p := range c.params {
		if p == name {
			return k
		}
		k++
	}
	return -1
}

// decodeInt puts integers into parameters that may be symbolic.
func decodeInt(_ int, leaf, dst any) error {
	d, ok := dst.(*symbolic.Int)
	if !ok {
		return pytree.ErrUseDefault
	}
	switch x := leaf.(type) {
	case int64:
		*d = symbolic.N(x)
		return nil
	case symbolic.Int:
		*d = x
		return nil
	}
	return pytree.ErrUseDefault
}
