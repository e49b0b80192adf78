package export

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// OrderedMap is a map that remembers the order of insertion.
type OrderedMap[V any] struct {
	keys []string
	vals map[string]V
}

// Set adds or replaces an entry.
func (m *OrderedMap[V]) Set(key string, v V) {
	if m.vals == nil {
		m.vals = map[string]V{}
	}
	if _, ok := m.vals[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.vals[key] = v
}

// Get finds an entry.
func (m *OrderedMap[V]) Get(key string) (V, bool) {
	v, ok := m.vals[key]
	return v, ok
}

// Delete removes an entry; a missing one is no fault.
func (m *OrderedMap[V]) Delete(key string) {
	if _, ok := m.vals[key]; ok {
		delete(m.vals, key)
		m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return k == key })
	}
}

// Keys lists the keys in order of insertion.
func (m *OrderedMap[V]) Keys() []string { return slices.Clone(m.keys) }

// Len is the number of entries.
func (m *OrderedMap[V]) Len() int { return len(m.keys) }

// All iterates in order of insertion.
func (m *OrderedMap[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range m.keys {
			if !yield(k, m.vals[k]) {
				return
			}
		}
	}
}

// CustomObject is a constant that is no tensor: an object that only its own library can build. Its bytes are kept as the
// archive holds them and never executed.
type CustomObject struct {
	Class string // qualified name, if known
	Form  string // "custom_obj" (TorchScript object) or "opaque_obj" (Python pickle)
	Bytes []byte
}

// Range is an inclusive range of a symbol or expression; nil is unbounded on that side.
type Range struct {
	Expr     string // as printed: "s77", "2*s0 + 1"
	Min, Max *int64
}

// String is PyTorch's text of a ValueRange, such as "VR[2, int_oo]".
func (r Range) String() string {
	return fmt.Sprintf("VR[%s, %s]", formatBound(r.Min, "-int_oo"), formatBound(r.Max, "int_oo"))
}

// Version is a schema version of the serialized form.
type Version struct{ Major, Minor int }

// Parts are what a program is made of.
type Parts struct {
	Graph     *Graph
	Signature *GraphSignature
	// State holds parameters and persistent buffers, also those that no input uses; aliases share storage.
	State *OrderedMap[*tensor.Tensor]
	// Constants holds lifted tensor constants and non-persistent buffers (*tensor.Tensor) and custom objects (*CustomObject).
	Constants        *OrderedMap[any]
	RangeConstraints []Range
	ModuleCallGraph  []ModuleCallEntry
	// ExampleInputs are the recorded (args, kwargs) as pytree values, nil if the archive has none that can be read.
	ExampleInputs *Example
	Verifiers     []string // dialects; empty means ATEN
	GuardsCode    []string
	OpsetVersion  map[string]int
	SchemaVersion Version
	TorchVersion  string
	Metadata      map[string]string // the graph module's metadata
	NamedTuples   map[string][]string
	RequiresGrad  map[string]bool // parameters that want gradients, for printing and saving
	// IsParameter names weights that are parameters though no input of the graph is one of theirs, such as the other names of a tied weight.
	IsParameter map[string]bool
	// Devices names where weights and constants belong that are not meant for the CPU. Their bytes are in the CPU's memory always.
	Devices map[string]aten.Device
	// Blank describes weights and constants without data: fake tensors, of which the archive has the shape only. They read as zeros.
	Blank map[string]*TensorMeta
	// ExampleRecord is the torch.save file of the example inputs as the archive holds it, which saving writes again; nil after
	// a change of ExampleInputs.
	ExampleRecord   []byte
	LegacyUnbounded bool // ranges of unbacked symbols must not be enforced (PyTorch 2.1, 2.2)
}

// Example is a recorded call.
type Example struct {
	Args   []any
	Kwargs []KwExample
}

// KwExample is one keyword argument of an example call.
type KwExample struct {
	Name  string
	Value any
}

// Program is an exported program. It is immutable; accessors give the parts, which must not be changed.
type Program struct{ p Parts }

// ArgumentError is a wrong use of this package's API.
type ArgumentError struct {
	Name string
	Got  string
	Want string
}

// Error names the argument.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("export: %s: got %s, want %s", e.Name, e.Got, e.Want)
}

// New makes a program of its parts and validates it.
func New(parts Parts) (*Program, error) {
	switch {
	case parts.Graph == nil:
		return nil, &ArgumentError{"Parts.Graph", "nil", "a graph"}
	case parts.Signature == nil:
		return nil, &ArgumentError{"Parts.Signature", "nil", "a signature"}
	}
	if parts.State == nil {
		parts.State = &OrderedMap[*tensor.Tensor]{}
	}
	if parts.Constants == nil {
		parts.Constants = &OrderedMap[any]{}
	}
	p := &Program{parts}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// Graph is the flat graph with lifted inputs.
func (p *Program) Graph() *Graph { return p.p.Graph }

// Signature describes the graph's inputs and outputs.
func (p *Program) Signature() *GraphSignature { return p.p.Signature }

// StateDict holds parameters and persistent buffers by name.
func (p *Program) StateDict() *OrderedMap[*tensor.Tensor] { return p.p.State }

// Constants holds lifted tensor constants, non-persistent buffers and custom objects by name.
func (p *Program) Constants() *OrderedMap[any] { return p.p.Constants }

// TensorConstants is PyTorch's old name for [Program.Constants]; it is not filtered.
func (p *Program) TensorConstants() *OrderedMap[any] { return p.p.Constants }

// RangeConstraints lists the recorded ranges in archive order.
func (p *Program) RangeConstraints() []Range { return p.p.RangeConstraints }

// ModuleCallGraph lists the module calls whose conventions are recorded; entry 0 is the program itself.
func (p *Program) ModuleCallGraph() []ModuleCallEntry { return p.p.ModuleCallGraph }

// ExampleInputs gives the recorded example call; ok is false without one.
func (p *Program) ExampleInputs() (ex *Example, ok bool) {
	return p.p.ExampleInputs, p.p.ExampleInputs != nil
}

// Verifiers lists the dialects that the program claims.
func (p *Program) Verifiers() []string {
	if len(p.p.Verifiers) == 0 {
		return []string{"ATEN"}
	}
	return p.p.Verifiers
}

// Dialect is the first verifier's dialect: "TRAINING" straight from export, "ATEN" after run_decompositions.
func (p *Program) Dialect() string { return p.Verifiers()[0] }

// GuardsCode lists the recorded guards as Python expressions.
func (p *Program) GuardsCode() []string { return p.p.GuardsCode }

// Parts gives all parts, for whoever writes the program.
func (p *Program) Parts() Parts { return p.p }

// TorchVersion is the PyTorch that wrote the program, such as "2.15.0+cpu".
func (p *Program) TorchVersion() string { return p.p.TorchVersion }

// SchemaVersion is the version of the serialized form that the program was read from.
func (p *Program) SchemaVersion() Version { return p.p.SchemaVersion }

// InputTensor finds the tensor behind a lifted input: parameter, buffer or constant.
func (p *Program) InputTensor(s *InputSpec) (*tensor.Tensor, error) {
	switch s.Kind {
	case Parameter, Buffer:
		if t, ok := p.p.State.Get(s.Target); ok && (s.Persistent == nil || *s.Persistent) {
			return t, nil
		}
	}
	if c, ok := p.p.Constants.Get(s.Target); ok {
		if t, ok := c.(*tensor.Tensor); ok {
			return t, nil
		}
	}
	if t, ok := p.p.State.Get(s.Target); ok {
		return t, nil
	}
	return nil, fmt.Errorf("export: input %s: no tensor named %q among the weights and constants", s.Arg.ArgName(), s.Target)
}

// NamedParameters iterates over the parameters in signature order.
func (p *Program) NamedParameters() iter.Seq2[string, *tensor.Tensor] {
	return p.named(Parameter)
}

// NamedBuffers iterates over the buffers in signature order.
func (p *Program) NamedBuffers() iter.Seq2[string, *tensor.Tensor] { return p.named(Buffer) }

// Parameters iterates over the parameters in signature order.
func (p *Program) Parameters() iter.Seq[*tensor.Tensor] { return second(p.NamedParameters()) }

// Buffers iterates over the buffers in signature order.
func (p *Program) Buffers() iter.Seq[*tensor.Tensor] { return second(p.NamedBuffers()) }

func second(s iter.Seq2[string, *tensor.Tensor]) iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for _, t := range s {
			if !yield(t) {
				return
			}
		}
	}
}

func (p *Program) named(k InputKind) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		for i := range p.p.Signature.Inputs {
			s := &p.p.Signature.Inputs[i]
			if s.Kind != k {
				continue
			}
			if t, err := p.InputTensor(s); err == nil && !yield(s.Target, t) {
				return
			}
		}
	}
}

// rangesText is PyTorch's text of the range constraints, "{s77: VR[2, 100]}". Like PyTorch it leaves out symbols that occur nowhere.
func (p *Program) rangesText() string {
	symbols := map[string]bool{}
	p.p.Graph.eachExpr(func(e *symbolic.Expr) { e.Symbols(func(name string) { symbols[name] = true }) })
	var parts []string
	for _, r := range p.p.RangeConstraints {
		e, err := symbolic.Parse(r.Expr)
		known := err == nil
		if known {
			e.Symbols(func(name string) { known = known && symbols[name] })
		}
		if known {
			parts = append(parts, r.Expr+": "+r.String())
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
