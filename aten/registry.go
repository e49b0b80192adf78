package aten

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// Tag says of an operator what its schema cannot.
type Tag uint32

// The tags. Core is PyTorch's own; the others serve the executors, the passes and the planner.
const (
	// Core marks the Core ATen operator set.
	Core Tag = 1 << iota
	// Pointwise: each output element depends on the input elements at the same (broadcast) place only, and an output may
	// share memory exactly with an input.
	Pointwise
	// LazyBits: the operator handles conjugate and negative bits itself; for others the executor resolves them.
	LazyBits
	// DataDependent: the output's sizes or numbers depend on the data.
	DataDependent
	// Random: the operator draws from the generator.
	Random
	// Dequantize: the operator spells out numbers of fewer bits, which a planner may let kernels read as they are.
	Dequantize
	// SizesOnly: the result depends on the sizes, strides and dtypes of tensors among the arguments, not on their elements.
	SizesOnly
	// Effect: the operator must run though nobody uses a result (assertions).
	Effect
)

// Kernel is one execution of an operator: its arguments, and outputs that the caller allocated as the shape function said.
type Kernel struct {
	*Args
	Out  []*tensor.Tensor // in order; nil for an undefined output
	Pool *pool.Pool       // splits work; nil runs serially
	Rand *Generator       // random numbers; nil if the executor has none
}

// T is the tensor of argument i.
func (k *Kernel) T(i int) *tensor.Tensor { return k.Tensor(i).T }

// OptT is the tensor of an optional argument, nil for None.
func (k *Kernel) OptT(i int) *tensor.Tensor {
	if v := k.OptTensor(i); v != nil {
		return v.T
	}
	return nil
}

// Op is one operator. See the package comment for how to fill it.
type Op struct {
	Schema string
	Tags   Tag
	Shape  func(a *Args) []Meta
	CPU    func(k *Kernel)
	// Decomp computes the results from other operators: a *Value or nil for each tensor return, in order; the elements of a
	// Tensor[] return one after the other.
	Decomp  func(b *Build, a *Args) []*Value
	Dynamic func(k *Kernel) []*tensor.Tensor
	Result  func(a *Args) any
	Note    string
	// Writes lists parameters that the operator may write although its schema does not mark them (the running statistics of
	// batch_norm), unless its bool parameter "training" or "use_input_stats" is false.
	Writes []int

	schema   *FuncSchema
	defaults []any
	body     func(a *Args) *Body
	// composed is a kernel that calls other operators, which run at once.
	composed func(b *Build, k *Kernel)
	derived  string // how the entry came about, "" for a declared one
}

// Name is "aten.add.Tensor".
func (op *Op) Name() string { return op.schema.Name() }

// Signature is the parsed schema.
func (op *Op) Signature() *FuncSchema { return op.schema }

// Derived says from what a derived entry was made ("in-place of aten.add.Tensor"), "" for a declared one.
func (op *Op) Derived() string { return op.derived }

// IsView reports that the operator's result may share storage with an argument without being that argument.
func (op *Op) IsView() bool {
	r := op.schema.Returns
	return len(r) > 0 && r[0].Alias != "" && !r[0].Mutable()
}

// Mutates reports that the operator writes to an argument.
func (op *Op) Mutates() bool {
	for i := range op.schema.Params {
		if op.schema.Params[i].Type.Mutable() {
			return true
		}
	}
	return false
}

func (op *Op) init() error {
	s, err := ParseSchema(op.Schema)
	if err != nil {
		return err
	}
	op.schema = s
	op.defaults = make([]any, len(s.Params))
	for i := range s.Params {
		if op.defaults[i], err = parseDefault(&s.Params[i]); err != nil {
			return fmt.Errorf("aten: schema %q: argument %s: %w", op.Schema, s.Params[i].Name, err)
		}
	}
	if op.Shape == nil && op.Decomp == nil && op.Dynamic == nil && op.Result == nil && !(op.CPU != nil && len(s.Returns) == 0) {
		return fmt.Errorf("aten: %s has neither Shape, Decomp, Dynamic nor Result", s.Name())
	}
	return nil
}

// Registry finds operators by name. It is immutable but for its cache of derived entries, and safe for concurrent use.
type Registry struct {
	parent  *Registry
	ops     map[string]*Op
	mu      sync.RWMutex
	derived map[string]*Op
}

// NewRegistry makes a registry of ops over a parent (nil for none); an entry hides the parent's entry of the same name.
func NewRegistry(parent *Registry, ops ...*Op) (*Registry, error) {
	r := &Registry{parent: parent, ops: make(map[string]*Op, len(ops)), derived: map[string]*Op{}}
	for _, op := range ops {
		if err := op.init(); err != nil {
			return nil, err
		}
		if op.composed != nil {
			op.CPU = func(k *Kernel) { op.composed(&Build{Exec: &Eager{Pool: k.Pool}, Reg: r}, k) }
		}
		if r.ops[op.Name()] != nil {
			return nil, fmt.Errorf("aten: operator %s is declared twice", op.Name())
		}
		r.ops[op.Name()] = op
	}
	return r, nil
}

var builtin = sync.OnceValue(func() *Registry {
	var ops []*Op
	for _, f := range families() {
		for i := range f {
			ops = append(ops, &f[i])
		}
	}
	r, err := NewRegistry(nil, ops...)
	if err != nil {
		panic(err) // a declared entry is malformed: every test finds this
	}
	for name, f := range bodies {
		op := r.ops[name]
		if op == nil || op.CPU == nil {
			panic("aten: a body for " + name + ", which has no kernel")
		}
		op.body = f
	}
	return r
})

// Builtin is the registry of all operators of this library.
func Builtin() *Registry { return builtin() }

// Lookup finds an operator by "aten.add.Tensor", "torch.ops.aten.add.Tensor" or "aten.relu.default"; nil if there is none.
// In-place, out and _copy forms are derived from the functional or view entry when they are not declared.
func (r *Registry) Lookup(name string) *Op {
	name = strings.TrimPrefix(name, "torch.ops.")
	for q := r; q != nil; q = q.parent {
		if op := q.ops[name]; op != nil {
			return op
		}
	}
	r.mu.RLock()
	op, ok := r.derived[name]
	r.mu.RUnlock()
	if ok {
		return op
	}
	op = r.derive(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.derived[name] = op
	return op
}

// Ops lists the declared operators, those of parents included, sorted by name.
func (r *Registry) Ops() []*Op {
	seen := map[string]*Op{}
	for q := r; q != nil; q = q.parent {
		for n, op := range q.ops {
			if seen[n] == nil {
				seen[n] = op
			}
		}
	}
	out := make([]*Op, 0, len(seen))
	for _, op := range seen {
		out = append(out, op)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	return out
}

// irregularInPlace names the functional form of in-place operators whose overload is called otherwise.
var irregularInPlace = map[string]string{
	"aten.pow_.Tensor": "aten.pow.Tensor_Tensor", "aten.pow_.Scalar": "aten.pow.Tensor_Scalar", "aten.ldexp_.default": "aten.ldexp.Tensor",
	"aten.float_power_.Tensor": "aten.float_power.Tensor_Tensor", "aten.float_power_.Scalar": "aten.float_power.Tensor_Scalar",
	"aten.__iand__.Tensor": "aten.__and__.Tensor", "aten.__iand__.Scalar": "aten.__and__.Scalar",
	"aten.__ior__.Tensor": "aten.__or__.Tensor", "aten.__ior__.Scalar": "aten.__or__.Scalar",
	"aten.__ixor__.Tensor": "aten.__xor__.Tensor", "aten.__ixor__.Scalar": "aten.__xor__.Scalar",
	"aten.__ilshift__.Tensor": "aten.__lshift__.Tensor", "aten.__ilshift__.Scalar": "aten.__lshift__.Scalar",
	"aten.__irshift__.Tensor": "aten.__rshift__.Tensor", "aten.__irshift__.Scalar": "aten.__rshift__.Scalar",
}

// derive makes the in-place or out form of a functional entry, or the _copy form of a view.
func (r *Registry) derive(name string) *Op {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return nil
	}
	ns, base, overload := parts[0], parts[1], parts[2]
	if f := irregularInPlace[name]; f != "" {
		op := inplaceOf(r.Lookup(f))
		op.schema.Base, op.schema.Overload = base, strings.TrimSuffix(overload, "default")
		op.schema.text = ns + "::" + strings.TrimSuffix(base+"."+overload, ".default") + op.schema.text[strings.IndexByte(op.schema.text, '('):]
		return op
	}
	if f, ok := strings.CutSuffix(base, "_"); ok && !strings.HasSuffix(f, "_") {
		if op := r.Lookup(ns + "." + f + "." + overload); op != nil {
			return inplaceOf(op)
		}
	}
	if f, ok := strings.CutSuffix(base, "_copy"); ok {
		if op := r.Lookup(ns + "." + f + "." + overload); op != nil && op.IsView() {
			return copyOf(op)
		}
	}
	if ns == "aten" {
		return r.outVariant(base + "." + overload)
	}
	return nil
}

func inplaceOf(op *Op) *Op {
	s := op.schema
	if len(s.Params) == 0 || len(s.Returns) != 1 || s.Params[0].Type.Base != "Tensor" || s.Params[0].Type.List || s.Returns[0].Base != "Tensor" || s.Returns[0].List {
		return nil
	}
	if op.Shape == nil && op.Decomp == nil {
		return nil
	}
	d := *op
	d.schema = renamed(s, s.Base+"_")
	d.schema.Params = slices.Clone(s.Params)
	d.schema.Params[0].Type.Alias = "a!"
	d.schema.Returns = []Type{{Base: "Tensor", Alias: "a!"}}
	d.schema.text = strings.Replace(d.schema.text, "(Tensor ", "(Tensor(a!) ", 1)
	d.schema.text = d.schema.text[:strings.LastIndex(d.schema.text, " -> ")] + " -> Tensor(a!)"
	d.derived = "in-place of " + op.Name()
	d.Tags &^= Core
	if op.IsView() {
		return nil // transpose_ and its like change the tensor itself: declared where they occur
	}
	d.Shape, d.CPU, d.Dynamic = nil, nil, nil
	d.Decomp = func(b *Build, a *Args) []*Value {
		return []*Value{b.writeBack(op, a)}
	}
	return &d
}

func copyOf(op *Op) *Op {
	d := *op
	d.schema = renamed(op.schema, op.schema.Base+"_copy")
	d.derived = "copy of " + op.Name()
	d.Tags &^= Core
	d.schema.Params = slices.Clone(d.schema.Params)
	for i := range d.schema.Params {
		d.schema.Params[i].Type.Alias = ""
	}
	d.schema.Returns = slices.Clone(d.schema.Returns)
	for i := range d.schema.Returns {
		d.schema.Returns[i].Alias = ""
	}
	for _, mark := range []string{"(a)", "(a -> *)"} {
		d.schema.text = strings.ReplaceAll(d.schema.text, mark, "")
	}
	d.Shape, d.CPU, d.Dynamic, d.Result = nil, nil, nil, nil
	d.Decomp = func(b *Build, a *Args) []*Value {
		views := b.call(op, &Args{Op: op, V: a.V})
		out := make([]*Value, len(views))
		for i, v := range views {
			out[i] = b.Call("clone", v, Kw("memory_format", ContiguousFormat))
		}
		return out
	}
	return &d
}

func renamed(s *FuncSchema, base string) *FuncSchema {
	c := *s
	c.text = strings.Replace(s.text, "::"+s.Base, "::"+base, 1)
	c.Base = base
	return &c
}
