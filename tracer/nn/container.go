package nn

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/pt2go/pt2/tracer"
)

// Sequential calls modules one after the other; they are named "0", "1" and so on.
type Sequential struct {
	layer
	modules []tracer.Module
}

// NewSequential chains modules.
func NewSequential(m ...tracer.Module) *Sequential {
	return &Sequential{layer{class: "container.Sequential"}, m}
}

// Children implements [tracer.Container].
func (s *Sequential) Children() []tracer.Child { return numbered(s.modules) }

// Forward implements [tracer.Module].
func (s *Sequential) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	for _, m := range s.modules {
		x = tracer.Call(m, x...)
	}
	return x
}

// InputNames implements [tracer.Named].
func (s *Sequential) InputNames() []string { return []string{"input"} }

func numbered(modules []tracer.Module) []tracer.Child {
	out := make([]tracer.Child, len(modules))
	for i, m := range modules {
		out[i] = tracer.Child{Name: strconv.Itoa(i), Module: m}
	}
	return out
}

// ModuleList holds modules named "0", "1" and so on, for a model that calls them itself.
type ModuleList struct {
	layer
	modules []tracer.Module
}

// NewModuleList makes a list.
func NewModuleList(m ...tracer.Module) *ModuleList {
	return &ModuleList{layer{class: "container.ModuleList"}, m}
}

// Modules are those of the list.
func (l *ModuleList) Modules() []tracer.Module { return l.modules }

// Children implements [tracer.Container].
func (l *ModuleList) Children() []tracer.Child { return numbered(l.modules) }

// Forward refuses: a list is no function.
func (l *ModuleList) Forward(...*tracer.Tensor) []*tracer.Tensor {
	panic(&tracer.UserError{Kind: tracer.InvalidInput, Msg: "ModuleList: a list cannot be called; call its Modules"})
}

// ModuleDict holds modules by name, for a model that calls them itself.
type ModuleDict struct {
	layer
	names   []string
	modules map[string]tracer.Module
}

// NewModuleDict makes an empty one.
func NewModuleDict() *ModuleDict {
	return &ModuleDict{layer{class: "container.ModuleDict"}, nil, map[string]tracer.Module{}}
}

// Set adds a module, or replaces it, and gives the dict.
func (d *ModuleDict) Set(name string, m tracer.Module) *ModuleDict {
	if !slices.Contains(d.names, name) {
		d.names = append(d.names, name)
	}
	d.modules[name] = m
	return d
}

// Get is the module of that name.
func (d *ModuleDict) Get(name string) tracer.Module {
	m, ok := d.modules[name]
	if !ok {
		panic(&tracer.UserError{Kind: tracer.InvalidInput, Msg: fmt.Sprintf("ModuleDict: there is no module %q, only %q", name, d.names)})
	}
	return m
}

// Children implements [tracer.Container].
func (d *ModuleDict) Children() []tracer.Child {
	out := make([]tracer.Child, len(d.names))
	for i, n := range d.names {
		out[i] = tracer.Child{Name: n, Module: d.modules[n]}
	}
	return out
}

// Forward refuses: a dict is no function.
func (d *ModuleDict) Forward(...*tracer.Tensor) []*tracer.Tensor {
	panic(&tracer.UserError{Kind: tracer.InvalidInput, Msg: "ModuleDict: a dict cannot be called; call one of its modules"})
}

// Flatten joins dimensions.
type Flatten struct {
	layer
	start, end int
}

// NewFlatten joins the dimensions from the second to the last; [NewFlattenOf] others.
func NewFlatten() *Flatten { return NewFlattenOf(1, -1) }

// NewFlattenOf joins the dimensions from start to end.
func NewFlattenOf(start, end int) *Flatten {
	return &Flatten{layer{class: "flatten.Flatten"}, start, end}
}

// Forward implements [tracer.Module].
func (f *Flatten) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("flatten.using_ints", f.start, f.end))
}

// Unflatten makes several dimensions of one.
type Unflatten struct {
	layer
	dim   int
	sizes []int64
}

// NewUnflatten makes of a dimension those with the given sizes; -1 is what is left.
func NewUnflatten(dim int, sizes ...int64) *Unflatten {
	return &Unflatten{layer{class: "flatten.Unflatten"}, dim, sizes}
}

// Forward implements [tracer.Module].
func (u *Unflatten) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("unflatten.int", u.dim, u.sizes))
}
