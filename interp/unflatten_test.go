package interp_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// treeText lists modules, graphs, parameters and buffers as testdata/unflatten.py does.
func treeText(u *interp.UnflattenedModule) string {
	var b strings.Builder
	for path, m := range u.NamedModules() {
		switch m := m.(type) {
		case *interp.InterpreterModule:
			fmt.Fprintf(&b, "== %s %s\n", path, m.TypeName())
			if m.Graph() != nil {
				b.WriteString(m.Graph().String() + "\n")
			}
		case *interp.InterpreterModuleDispatcher:
			fmt.Fprintf(&b, "== %s dispatcher %d %s\n", path, len(m.CallModules()), m.TypeName())
			for _, c := range m.CallModules() {
				b.WriteString(c.Graph().String() + "\n")
			}
		}
	}
	for n, t := range u.NamedParameters() {
		fmt.Fprintf(&b, "P %s %v\n", n, t.Sizes())
	}
	for n, t := range u.NamedBuffers() {
		fmt.Fprintf(&b, "B %s %v\n", n, t.Sizes())
	}
	return b.String()
}

// otherTrees are programs whose hierarchy differs from PyTorch's on purpose, by the beginnings of their names.
var otherTrees = []string{
	// A dispatcher of PyTorch loses the buffers that it takes over from its modules: it sets them as plain attributes.
	"exp.test_unflatten_random_dag_mutating_buf_preserving", "exp.test_unflatten_no_unroll",
	// Two names for one constant in the archive are one tensor here; PyTorch's loader makes two.
	"exp.test_duplicate_modules_with_non_persistent_buffers",
	// Results of one call are written back after it, in PyTorch after the getitem of each.
	"exp.test_run_decomposition_supports_user_input_mutation",
}

func differs(id string) bool {
	return slices.ContainsFunc(otherTrees, func(prefix string) bool { return strings.HasPrefix(id, prefix) })
}

// TestUnflattenTrees holds the hierarchy of modules, the nodes of each graph, and parameters and buffers against PyTorch's.
func TestUnflattenTrees(t *testing.T) {
	f, err := os.Open("testdata/unflatten.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<24)
	n := 0
	for sc.Scan() {
		var want struct{ ID, Tree, Error string }
		if err := json.Unmarshal(sc.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if known(want.ID) {
			continue
		}
		p, _ := testCase(t, "suite-public", want.ID)
		u, err := interp.Unflatten(p, nil, interp.Options{})
		switch {
		case want.Error != "":
			if err == nil {
				t.Errorf("%s: no error, PyTorch says %q", want.ID, want.Error)
			}
		case err != nil:
			t.Errorf("%s: %v", want.ID, err)
		case treeText(u) != want.Tree && !differs(want.ID):
			t.Errorf("%s: got\n%s\nwant\n%s", want.ID, treeText(u), want.Tree)
		}
		n++
	}
	if n < 50 {
		t.Errorf("only %d goldens", n)
	}
}

// TestUnflattenedProgramsAgree runs what becomes of the corpora's programs on PyTorch's calls. Whatever records its modules can be
// unflattened.
func TestUnflattenedProgramsAgree(t *testing.T) {
	for _, corpus := range []string{"suite-public", "zoo-selection", "reports-public"} {
		testCase(t, corpus, first(t, corpus))
		dir, _ := unpacked.Load(corpus)
		cases, err := conformance.ReadManifest(dir.(func() string)())
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for i, c := range cases {
			if (testing.Short() && i%20 != 0) || c.Program() != "" || known(c.ID) {
				continue
			}
			p, calls := testCase(t, corpus, c.ID)
			u, err := interp.Unflatten(p, nil, interp.Options{})
			if e := (*passes.UnflattenError)(nil); errors.As(err, &e) && strings.Contains(e.Msg, "Unable to find nn_module_stack") {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", c.ID, err)
				continue
			}
			ran++
			tol := conformance.Tolerance{RTol: c.RTol, ATol: c.ATol, ShapeOnly: c.Has("not-unique")}
			for j, call := range calls {
				if call.Failed {
					continue // what is outside of ranges fails in both; guards are not part of an unflattened module
				}
				out, err := u.Run(context.Background(), conformance.CloneInputs(call.Inputs)...)
				if err == nil {
					err = conformance.Compare(out, call.Outputs, tol)
				}
				if err != nil {
					t.Errorf("%s: call %d: %v", c.ID, j, err)
				}
			}
		}
		if ran < 5 {
			t.Errorf("%s: %d programs were unflattened", corpus, ran)
		}
	}
}

// known reports cases that are listed in conformance/testdata/failing.txt or cannot be loaded.
func known(id string) bool {
	b, _ := os.ReadFile(filepath.Join("..", "conformance", "testdata", "failing.txt"))
	return strings.Contains(string(b), id)
}

func first(t *testing.T, corpus string) string {
	t.Helper()
	switch corpus {
	case "suite-public":
		return "unflatten.test_simple_alias-0"
	case "reports-public":
		return "sym-outputs-c"
	}
	return "hf-bert-seqcls"
}

func unflatten(t *testing.T, id string, adapter interp.FlatArgsAdapter) (*interp.UnflattenedModule, []conformance.Call) {
	t.Helper()
	p, calls := testCase(t, "suite-public", id)
	u, err := interp.Unflatten(p, adapter, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u, calls
}

func TestPreservedModuleCanBeReplaced(t *testing.T) {
	u, calls := unflatten(t, "unflatten.test_unflatten_preserve_signature-0", nil)
	was := u.Submodule("foo")
	called := 0
	err := u.SetSubmodule("foo", interp.SubmoduleFunc(func(ctx context.Context, args []any, kwargs pytree.Dict) (any, error) {
		called++
		return was.Call(ctx, args, kwargs)
	}))
	if err != nil {
		t.Fatal(err)
	}
	out, err := u.Run(context.Background(), conformance.CloneInputs(calls[0].Inputs)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := conformance.Compare(out, calls[0].Outputs, conformance.Tolerance{RTol: 1e-5, ATol: 1e-5}); err != nil || called != 1 {
		t.Errorf("%v, called %d times", err, called)
	}
	for _, bad := range []string{"", "nothing.there"} {
		if e := (*export.ArgumentError)(nil); !errors.As(u.SetSubmodule(bad, was), &e) {
			t.Errorf("a module at %q is accepted", bad)
		}
	}
}

// dropLast adapts calls with one argument too many.
type dropLast struct{ short bool }

func (d dropLast) Adapt(_, input *pytree.Spec, args []any, _ map[string]string, obj any) ([]any, error) {
	if input.NumLeaves() != len(args) || len(obj.([]any)) != len(args) {
		return nil, errors.New("the spec is another call's")
	}
	if d.short {
		return nil, nil
	}
	return args[:len(args)-1], nil
}

func (dropLast) FlatArgPaths() []string { return nil }

func TestFlatArgsAdapter(t *testing.T) {
	id := "unflatten.test_unflatten_wrong_input-0"
	u, calls := unflatten(t, id, dropLast{})
	args := conformance.CloneInputs(calls[0].Inputs)
	want, err := u.Call(context.Background(), args, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := u.Call(context.Background(), append(args, int64(7)), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, _, _ := pytree.Flatten(want)
	g, _, _ := pytree.Flatten(got)
	if err := conformance.Compare(g, w, conformance.Tolerance{}); err != nil {
		t.Error(err)
	}
	u, _ = unflatten(t, id, nil)
	if _, err := u.Call(context.Background(), append(args, int64(7)), nil); err == nil || !strings.Contains(err.Error(), "There is no flat args adapter specified. ") {
		t.Errorf("without an adapter: %v", err)
	}
	u, _ = unflatten(t, id, dropLast{short: true})
	if _, err := u.Call(context.Background(), append(args, int64(7)), nil); err == nil || !strings.Contains(err.Error(), "Flat args adaption failed, number of args mismatch") {
		t.Errorf("with a wrong adapter: %v", err)
	}
	u, _ = unflatten(t, id, dropLast{})
	bad := tensor.New(tensor.Float32, 1, 1, 1)
	if _, err := u.Call(context.Background(), append([]any{bad}, append(slices.Clone(args[1:]), int64(7))...), nil); err == nil || !strings.Contains(err.Error(), "<unknown location>") {
		t.Errorf("a wrong size after adaption: %v", err)
	}
}

func TestInterpreterModule(t *testing.T) {
	p, calls := testCase(t, "suite-public", "unflatten.test_unflatten_wrong_input-0-core")
	g := p.Graph()
	m, err := interp.NewInterpreterModule(g, "torch.nn.Linear", interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.TypeName() != "torch.nn.Linear" || m.Graph() != g || !strings.HasPrefix(m.String(), "class InterpreterModule(torch.nn.Module):") {
		t.Errorf("%s\n%s", m.TypeName(), m)
	}
	var args []any
	var kwargs pytree.Dict
	users := calls[0].Inputs
	for i, s := range p.Signature().Inputs {
		var x any
		if s.Kind == export.UserInput {
			x, users = users[0], users[1:]
		} else if x, err = p.InputTensor(&p.Signature().Inputs[i]); err != nil {
			t.Fatal(err)
		}
		args = append(args, x)
		kwargs = append(kwargs, pytree.Entry{Key: g.Inputs[i].Name, Value: x})
	}
	for _, call := range []struct {
		args   []any
		kwargs pytree.Dict
	}{{args, nil}, {args[:1], kwargs[1:]}} {
		out, err := m.Call(context.Background(), call.args, call.kwargs)
		if err != nil {
			t.Fatal(err)
		}
		leaves, _, _ := pytree.Flatten(out)
		if err := conformance.Compare(leaves, calls[0].Outputs, conformance.Tolerance{RTol: 1e-5, ATol: 1e-5}); err != nil {
			t.Error(err)
		}
	}
	if _, err := m.Call(context.Background(), args[:1], nil); err == nil {
		t.Error("a missing argument is no error")
	}
	for i := range args {
		args[i] = "no tensor"
	}
	e := (*interp.NodeError)(nil)
	if _, err := m.Call(context.Background(), args, nil); !errors.As(err, &e) || e.Node == "" {
		t.Errorf("got %v, want a NodeError", err)
	}
	if _, err := interp.NewInterpreterModule(nil, "", interp.Options{}); err == nil {
		t.Error("no graph is no error")
	}
}

func TestInterpreterModuleDispatcher(t *testing.T) {
	u, _ := unflatten(t, "exp.test_unflatten_multiple_graphs_dispatch-0", nil)
	var d *interp.InterpreterModuleDispatcher
	for _, m := range u.NamedModules() {
		if x, ok := m.(*interp.InterpreterModuleDispatcher); ok {
			d = x
		}
	}
	if d == nil || len(d.CallModules()) < 2 {
		t.Fatalf("no dispatcher in\n%s", u)
	}
	x, _ := tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	one := d.CallModules()
	var want []any
	for _, m := range one {
		out, err := m.Call(context.Background(), []any{x, true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, out)
	}
	// After an error the first module is the next again.
	if _, err := d.Call(context.Background(), []any{x, x, x}, nil); err == nil {
		t.Error("no error for too many arguments")
	}
	for i := range 2 * len(one) {
		got, err := d.Call(context.Background(), []any{x, true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := conformance.Compare([]any{got}, []any{want[i%len(one)]}, conformance.Tolerance{}); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := interp.NewInterpreterModuleDispatcher(nil, nil); err == nil {
		t.Error("no modules are no error")
	}
	if _, err := interp.NewInterpreterModuleDispatcher([]string{"nothing"}, one); err == nil {
		t.Error("an unknown attribute is no error")
	}
	e, err := interp.NewInterpreterModuleDispatcher(nil, one)
	if err != nil || e.TypeName() != d.TypeName() {
		t.Errorf("%v, %v", e, err)
	}
}

// Shared parameters stay shared, and the state dict has all names of the model.
func TestUnflattenedState(t *testing.T) {
	u, _ := unflatten(t, "unflatten.test_simple_alias-1", nil)
	params := 0
	for range u.NamedParameters() {
		params++
	}
	state := u.StateDict()
	if params >= state.Len() {
		t.Errorf("%d parameters, %d names: nothing is shared", params, state.Len())
	}
	for name := range u.Program().StateDict().All() {
		if _, ok := state.Get(name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if len(u.ModuleCallGraph()) == 0 || u.RangeConstraints() != nil {
		t.Error("the program's module calls or ranges are not its own")
	}
}

func TestUnflattenRefusals(t *testing.T) {
	p, _ := testCase(t, "reports-public", "sym-outputs-c")
	_, err := interp.Unflatten(p, nil, interp.Options{})
	if e := (*passes.UnflattenError)(nil); !errors.As(err, &e) || e.Node != "mul_1" || !strings.Contains(e.Msg, "Unable to find nn_module_stack for node mul_1") {
		t.Errorf("got %v", err)
	}
	p, _ = testCase(t, "suite-public", "unflatten.test_simple_alias-0")
	e := p.Edit()
	e.Parts().Signature.Outputs[0].Kind = export.LossOutput
	joint, err := e.Program()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := interp.Unflatten(joint, nil, interp.Options{}); err == nil || !strings.Contains(err.Error(), "Unflattening on JointExportModule NYI") {
		t.Errorf("got %v", err)
	}
}
