package passes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
)

// program loads one archive of a corpus of testdata.
func program(t *testing.T, corpus, id string) *export.Program {
	t.Helper()
	var p *export.Program
	golden.EachModel(t, corpus, func(name string, model []byte) bool {
		if name != id {
			return true
		}
		c, err := loader.OpenBytes(model, loader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p = c.Programs["model"]
		return false
	})
	if p == nil {
		t.Fatalf("%s holds no %s", corpus, id)
	}
	return p
}

func decompose(t *testing.T, p *export.Program, table *passes.DecompTable) *export.Program {
	t.Helper()
	q, err := passes.RunDecompositions(p, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func targets(p *export.Program) string {
	var out []string
	for _, n := range p.Graph().Nodes {
		out = append(out, strings.TrimPrefix(n.Target, "torch.ops.aten."))
	}
	return strings.Join(out, " ")
}

// The expected operators are those of PyTorch's own twins in the corpus, "-c" beside "-t".
func TestOperatorsEqualPyTorchs(t *testing.T) {
	for _, id := range []string{"nn.functional.linear-float32-0", "matmul-float32-1", "nn.functional.silu-bfloat16-0", "stack-float32-0", "softmax-float32-0",
		"nn.functional.layer_norm-float32-0", "nn.functional.conv2d-float32-0", "nn.functional.pixel_shuffle-bfloat16-0", "floor_divide-float32-1", "square-float32-0"} {
		if !has(t, id+"-t") || !has(t, id+"-c") {
			continue
		}
		got, want := targets(decompose(t, program(t, "opinfo-public", id+"-t"), nil)), targets(program(t, "opinfo-public", id+"-c"))
		if got != want {
			t.Errorf("%s: %s\nwant %s", id, got, want)
		}
	}
}

var ids map[string]bool

func has(t *testing.T, id string) bool {
	if ids == nil {
		ids = map[string]bool{}
		golden.EachModel(t, "opinfo-public", func(name string, _ []byte) bool { ids[name] = true; return true })
	}
	return ids[id]
}

// An empty table keeps composite operators, but what writes becomes functional.
func TestEmptyTable(t *testing.T) {
	p := program(t, "edge-public", "inplace-chain-t")
	before, after := targets(p), targets(decompose(t, p, passes.NewDecompTable()))
	if !strings.Contains(before, "_.") || strings.Contains(after, "_.Tensor") || strings.Contains(after, "_.default") {
		t.Errorf("%s\nbecame %s", before, after)
	}
	q := decompose(t, program(t, "edge-public", "norms-t"), passes.NewDecompTable())
	if q.Dialect() != "ATEN" || !strings.Contains(targets(q), "layer_norm.default") || strings.Contains(targets(q), "native_layer_norm") {
		t.Errorf("%s: %s", q.Dialect(), targets(q))
	}
}

// What the program writes leaves as mutation outputs before the user's.
func TestMutations(t *testing.T) {
	for id, want := range map[string]export.OutputKind{"bn-train-t": export.BufferMutation, "input-mutate-view-t": export.UserInputMutation, "stateful-ring-t": export.BufferMutation} {
		q := decompose(t, program(t, "edge-public", id), nil)
		if got := q.Signature().Outputs[0].Kind; got != want {
			t.Errorf("%s: the first output is a %v, want %v", id, got, want)
		}
		for _, n := range q.Graph().Nodes {
			if n.Op != nil && n.Op.Mutates() {
				t.Errorf("%s: %s writes", id, n.Target)
			}
		}
	}
}

// Programs that were taken apart, saved and loaded compute what the originals do, to rounding, with guards.
func TestDecomposedProgramsAgree(t *testing.T) {
	for corpus, every := range map[string]int{"edge-public": 1, "reports-public": 1, "zoo-selection": 1, "suite-public": 3, "opinfo-public": 8, "old-public": 4} {
		t.Run(corpus, func(t *testing.T) {
			t.Parallel()
			root, err := conformance.Unpack(filepath.Join(golden.Root(t), "testdata", corpus+".tar.zst"), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			cases, err := conformance.ReadManifest(root)
			if err != nil {
				t.Fatal(err)
			}
			refused := 0
			for i := range cases {
				if i%every == 0 {
					err := agrees(&cases[i], t.TempDir())
					var write *passes.MutationError
					if errors.As(err, &write) {
						refused++
					} else if err != nil {
						t.Errorf("%s: %v", cases[i].ID, err)
					}
				}
			}
			t.Logf("%d programs are refused because they write in ways that have no functional form", refused)
		})
	}
}

// agrees decomposes the program of a case and runs it. A case that fails as it is passes too.
func agrees(c *conformance.Case, dir string) error {
	if conformance.Run(c, loader.Options{}, interp.Options{}) != nil {
		return nil
	}
	in, err := loader.Open(filepath.Join(c.Dir, "model.pt2"), loader.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	pkg, err := in.Package()
	if err != nil {
		return err
	}
	for name, p := range pkg.Programs {
		if pkg.Programs[name], err = passes.RunDecompositions(p, nil, nil); err != nil {
			return err
		}
	}
	if err := loader.PackagePT2File(filepath.Join(dir, "model.pt2"), pkg, loader.SaveOptions{}); err != nil {
		return err
	}
	if err := os.Link(filepath.Join(c.Dir, "expected.pt"), filepath.Join(dir, "expected.pt")); err != nil {
		return err
	}
	d := *c
	d.Dir = dir
	d.RTol, d.ATol = max(10*c.RTol, 1e-4), max(10*c.ATol, 1e-4) // other formulas round otherwise
	return conformance.Run(&d, loader.Options{}, interp.Options{})
}

// The names are those of default_decompositions() in PyTorch 2.15.0.
func TestTable(t *testing.T) {
	a := passes.DefaultDecompositions()
	if a.Len() != 902 || !a.Has("aten.linear.default") || !a.Has("torch.ops.aten.linear.default") {
		t.Errorf("%v", a)
	}
	b := a.Clone()
	if _, err := a.Pop("aten.linear.default"); err != nil {
		t.Error(err)
	}
	var key *passes.KeyError
	if _, err := a.Pop("aten.linear.default"); !errors.As(err, &key) || fmt.Sprint(err) != "passes: KeyError: aten.linear.default" {
		t.Errorf("second pop: %v", err)
	}
	if a.PopOr("aten.linear.default", nil) != nil || b.Len() != 902 || a.Len() != 901 {
		t.Error("the copy follows, or pop with a default fails")
	}
	a.Update(b)
	if len(a.Keys()) != 902 || len(a.Materialize()) != 902 {
		t.Error("update")
	}
	n := 0
	for range a.All() {
		n++
	}
	if n != 902 || a.Delete("aten.no.such") == nil {
		t.Error("All, or Delete of what is missing")
	}
}

// A formula of the caller's takes the place of PyTorch's; an entry taken out keeps its operator.
func TestCustomFormula(t *testing.T) {
	p := program(t, "opinfo-public", "square-float32-0-t")
	table := passes.DefaultDecompositions()
	table.Set("aten.square.default", func(b *aten.Build, a *aten.Args) []*aten.Value {
		return []*aten.Value{b.Call("mul.Tensor", a.Tensor(0), a.Tensor(0))}
	})
	if got := targets(decompose(t, p, table)); got != "mul.Tensor" {
		t.Error(got)
	}
	if err := table.Delete("aten.square.default"); err != nil {
		t.Fatal(err)
	}
	if got := targets(decompose(t, p, table)); got != "square.default" {
		t.Error(got)
	}
}

// Of all pairs of twins in the corpus so many have PyTorch's operators in PyTorch's order, and so many print as PyTorch's, names and
// arguments included. The numbers may only grow.
func TestTwins(t *testing.T) {
	if testing.Short() {
		t.Skip("goes through the whole corpus")
	}
	twin, source := map[string]*export.Program{}, map[string]*export.Program{}
	golden.EachModel(t, "opinfo-public", func(id string, model []byte) bool {
		c, err := loader.OpenBytes(model, loader.Options{})
		if err != nil {
			return true
		}
		if base, ok := strings.CutSuffix(id, "-t"); ok {
			source[base] = c.Programs["model"]
		} else if base, ok := strings.CutSuffix(id, "-c"); ok {
			twin[base] = c.Programs["model"]
		}
		return true
	})
	alike, same, pairs := 0, 0, 0
	for id, want := range twin {
		p := source[id]
		if p == nil {
			continue
		}
		pairs++
		q, err := passes.RunDecompositions(p, nil, nil)
		if err != nil || targets(q) != targets(want) {
			continue
		}
		if alike++; q.String() == want.String() {
			same++
		}
	}
	t.Logf("of %d pairs %d have the same operators, %d the same text", pairs, alike, same)
	if alike*1000 < pairs*858 || same*1000 < pairs*673 {
		t.Errorf("of %d pairs only %d have PyTorch's operators, and %d its text", pairs, alike, same)
	}
}
