package pt2

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// Kwargs are keyword arguments, as the last argument of [Model.Call].
type Kwargs map[string]any

// callSpec is what Call knows of a program: the structures of its inputs and outputs and what each leaf is.
type callSpec struct {
	in, out *pytree.Spec
	names   []string // of the positional parameters
	leaves  []export.GraphInput
	err     error
}

func newCallSpec(p *export.Program) *callSpec {
	c := &callSpec{}
	for i, s := range p.Signature().Inputs {
		if s.Kind == export.UserInput {
			c.leaves = append(c.leaves, p.Graph().Inputs[i])
		}
	}
	in, out := p.CallSpec()
	if in == "" || out == "" {
		c.err = fmt.Errorf("pt2: the archive does not record the structure of the program's inputs and outputs; use Run")
		return c
	}
	tuples := p.Parts().NamedTuples
	if c.in, c.err = pytree.Parse(in, tuples); c.err != nil {
		return c
	}
	if c.out, c.err = pytree.Parse(out, tuples); c.err != nil {
		return c
	}
	c.names = p.ModuleCallGraph()[0].Signature.ForwardArgNames
	if n := c.in.NumLeaves(); n != len(c.leaves) {
		c.err = fmt.Errorf("pt2: the program takes %d inputs, the recorded structure has %d; use Run", len(c.leaves), n)
	}
	return c
}

// Call calls the program with Go values and stores the result into what resp points to, which may be nil.
//
// One argument is a request: a struct or map with a field for each parameter of forward, keywords included; or, for a program
// of one input, that input. Several arguments are the positional ones, with [Kwargs] last for the keywords. Inside, a
// dict, named tuple or dataclass is a struct or a map, a tuple or list is a slice, an array or a struct with the fields in
// order; package pytree has values for what Go lacks. A struct's fields are found by the tag pt2:"name", else by name
// (InputIDs for input_ids).
//
// A tensor is a [*Tensor], a number or bool for a tensor without dimensions, or a slice ([]float32, [][]int64, ...), which
// becomes a tensor of the dtype that the program wants as [tensor.FromGo] says: without a copy where the elements lie in
// memory as they must. Numbers, bools and strings stand for themselves, nil for None.
//
// Results go the same way back: tensors into a *Tensor, into slices as [tensor.Tensor.Decode] says, one element into a number;
// the whole or any part into an any, with package pytree's values for the containers. Slices of a result may share memory with
// the result's tensor, but with nothing that the model uses.
//
// A value that does not fit is a *[pytree.MismatchError], with its place such as x['k'][0], what was wanted and what was given.
func (m *Model) Call(ctx context.Context, resp any, args ...any) error {
	c := m.spec
	if c.err != nil {
		return c.err
	}
	codec := pytree.Codec{Encode: c.encode, Decode: decode, IsLeaf: tensor.IsArrayType}
	leaves, err := c.flatten(&codec, args)
	if err != nil {
		return err
	}
	out, err := m.Run(ctx, leaves...)
	if err != nil || resp == nil {
		return err
	}
	return codec.Bind(c.out, out, resp)
}

// Call is [Model.Call] with the result as a value of type T.
func Call[T any](ctx context.Context, m *Model, args ...any) (T, error) {
	var resp T
	err := m.Call(ctx, &resp, args...)
	return resp, err
}

// Func is a model as a function from Req to Resp, by [Model.Call].
func Func[Req, Resp any](m *Model) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (Resp, error) { return Call[Resp](ctx, m, req) }
}

func (c *callSpec) flatten(codec *pytree.Codec, args []any) ([]any, error) {
	if len(args) == 1 {
		if _, ok := args[0].(Kwargs); !ok {
			return codec.FlattenRequest(c.in, args[0], c.names)
		}
	}
	var kwargs any
	if n := len(args); n > 0 {
		if k, ok := args[n-1].(Kwargs); ok {
			args, kwargs = args[:n-1], k
		}
	}
	return codec.FlattenCall(c.in, args, kwargs)
}

// encode makes input leaf i of a Go value.
func (c *callSpec) encode(i int, v any) (any, error) {
	want := &c.leaves[i]
	if t, ok := v.(*tensor.Tensor); ok {
		return t, nil // what it must be like is for the guards to say
	}
	if want.Value != nil && want.Value.Kind == export.TensorKind {
		for p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil(); {
			p = p.Elem()
			v = p.Interface()
		}
		if v == nil || want.Value.Tensor == nil || !tensor.IsArrayType(reflect.TypeOf(v)) {
			return nil, fmt.Errorf("want %s, got %s", describeInput(want), goType(v))
		}
		t, err := tensor.FromGo(v, want.Value.Tensor.DType)
		if err != nil {
			return nil, fmt.Errorf("want %s: %w", describeInput(want), err)
		}
		return t, nil
	}
	x, ok := scalar(reflect.ValueOf(v))
	if !ok {
		return nil, fmt.Errorf("want %s, got %s", describeInput(want), goType(v))
	}
	if n, isInt := x.(int64); isInt && wantsFloat(want) {
		return float64(n), nil
	}
	return x, nil
}

func wantsFloat(in *export.GraphInput) bool {
	if in.Value == nil {
		_, ok := in.Constant.(float64)
		return ok
	}
	return in.Value.Kind == export.SymFloatKind
}

// scalar gives a Python scalar for a Go number, bool, string or nil.
func scalar(v reflect.Value) (any, bool) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !v.IsValid() || v.Kind() == reflect.Pointer:
		return nil, true
	case v.Kind() == reflect.Bool:
		return v.Bool(), true
	case v.Kind() == reflect.String:
		return v.String(), true
	case v.CanInt():
		return v.Int(), true
	case v.CanUint() && v.Uint() <= 1<<63-1:
		return int64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return nil, false
}

// describeInput names what an input leaf is.
func describeInput(in *export.GraphInput) string {
	if in.Value == nil {
		return fmt.Sprintf("the constant %s that the program was exported with", constantText(in.Constant))
	}
	switch p := describe(in.Value, nil); p.Kind {
	case "tensor":
		return fmt.Sprintf("a %s tensor of sizes [%s]", p.DType, strings.Join(p.Sizes, ", "))
	case "int":
		return "an int"
	default:
		return "a " + p.Kind
	}
}

func constantText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

func goType(v any) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("a %T", v)
}

// decode stores an output leaf.
func decode(_ int, leaf, dst any) error {
	t, ok := leaf.(*tensor.Tensor)
	if !ok {
		return pytree.ErrUseDefault
	}
	return t.Decode(dst)
}
