package tracer

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/pt2go/pt2/tensor"
)

// Module is a part of a model whose inputs and outputs are tensors. A whole model may have a Forward method with parameters and results of
// other types: see [Export].
type Module interface {
	// Forward computes; it refuses input by panicking with an error, as operators do.
	Forward(x ...*Tensor) []*Tensor
}

// Named is what [Export] asks of the whole model: the names of Forward's inputs, which Go does not keep.
type Named interface{ InputNames() []string }

// Container is a module whose sub-modules have names of their own, such as the numbers of a Sequential.
type Container interface{ Children() []Child }

// Child is a sub-module under its name.
type Child struct {
	Name   string
	Module Module
}

// Holder is a module whose own parameters are no fields: their names in the state dict, and they.
type Holder interface {
	Parameters() (names []string, parameters []*Parameter)
}

// Typed is a module that tells its type as PyTorch's metadata has it, such as "torch.nn.modules.linear.Linear".
type Typed interface{ TypeName() string }

// Parameter is a weight. Set RequiresGrad for what training may change.
type Parameter struct {
	T            *tensor.Tensor
	RequiresGrad bool
}

// Buffer is state that is no weight. A persistent one is part of the state dict.
type Buffer struct {
	T          *tensor.Tensor
	Persistent bool
}

// entry is a parameter or buffer with its full name.
type entry struct {
	fqn    string
	param  *Parameter
	buffer *Buffer
}

func (e *entry) tensor() *tensor.Tensor {
	if e.param != nil {
		return e.param.T
	}
	return e.buffer.T
}

// tree is what a model is made of.
type tree struct {
	entries []entry
	modules []part // full names, the model itself first
	seen    map[any]bool
}

// part is the model or a sub-module under its full name.
type part struct {
	name string
	m    any
}

// walk lists the state of a model in the order of fields: a module's own before that of its sub-modules, as PyTorch's.
func walk(m any) (*tree, error) {
	t := &tree{seen: map[any]bool{}}
	return t, t.module("", m)
}

func (t *tree) module(fqn string, m any) error {
	if v := reflect.ValueOf(m); m == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	t.modules = append(t.modules, part{fqn, m})
	v := reflect.ValueOf(m)
	if v.Kind() == reflect.Pointer {
		if t.seen[m] {
			return nil
		}
		t.seen[m] = true
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	var children []part
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name := fieldName(f)
		switch x := v.Field(i).Interface().(type) {
		default:
			if p := v.Field(i); p.Kind() == reflect.Pointer && !p.IsNil() && p.MethodByName("Forward").IsValid() {
				children = append(children, part{name, x})
			}
		case *Parameter:
			if x != nil {
				t.entries = append(t.entries, entry{fqn: join(fqn, name), param: x})
			}
		case *Buffer:
			if x != nil {
				t.entries = append(t.entries, entry{fqn: join(fqn, name), buffer: x})
			}
		case Module:
			children = append(children, part{name, x})
		case []Module:
			for j, c := range x {
				children = append(children, part{fmt.Sprintf("%s.%d", name, j), c})
			}
		}
	}
	if h, ok := m.(Holder); ok {
		names, parameters := h.Parameters()
		for i, p := range parameters {
			t.entries = append(t.entries, entry{fqn: join(fqn, names[i]), param: p})
		}
	}
	if c, ok := m.(Container); ok {
		children = nil
		for _, c := range c.Children() {
			children = append(children, part{c.Name, c.Module})
		}
	}
	for _, c := range children {
		if c.m == nil {
			return invalid("the sub-module %s is nil", join(fqn, c.name))
		}
		if err := t.module(join(fqn, c.name), c.m); err != nil {
			return err
		}
	}
	return nil
}

// EachModule calls f for a model and all its sub-modules with their names, "" for the model; a module that has several has several calls.
func EachModule(m any, f func(name string, m any)) error {
	t, err := walk(m)
	if err != nil {
		return err
	}
	for _, c := range t.modules {
		f(c.name, c.m)
	}
	return nil
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// fieldName is the name of a field in the state dict: its tag `pt2:"..."`, or the field's name in Python's spelling.
func fieldName(f reflect.StructField) string {
	if tag := f.Tag.Get("pt2"); tag != "" {
		return tag
	}
	var b strings.Builder
	runes := []rune(f.Name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// StateDict lists parameters and persistent buffers by their names in PyTorch, in order.
func StateDict(m any) (names []string, tensors []*tensor.Tensor, err error) {
	t, err := walk(m)
	if err != nil {
		return nil, nil, err
	}
	for i := range t.entries {
		if e := &t.entries[i]; e.param != nil || e.buffer.Persistent {
			names, tensors = append(names, e.fqn), append(tensors, e.tensor())
		}
	}
	return names, tensors, nil
}

// LoadStateDict puts tensors in the place of a model's by name. All names must be there, with the sizes and dtypes that the model has.
func LoadStateDict(m any, state map[string]*tensor.Tensor) error {
	t, err := walk(m)
	if err != nil {
		return err
	}
	for i := range t.entries {
		e := &t.entries[i]
		if e.buffer != nil && !e.buffer.Persistent {
			continue
		}
		x, ok := state[e.fqn]
		if !ok {
			return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Missing key in state_dict: %q", e.fqn)}
		}
		if old := e.tensor(); old.DType() != x.DType() || fmt.Sprint(old.Sizes()) != fmt.Sprint(x.Sizes()) {
			return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("size mismatch for %s: copying a param with shape %v and dtype %v, the shape in current model is %v, the dtype %v",
				e.fqn, x.Sizes(), x.DType(), old.Sizes(), old.DType())}
		}
		if e.param != nil {
			e.param.T = x
		} else {
			e.buffer.T = x
		}
	}
	return nil
}
