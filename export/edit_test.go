package export_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/loader"
)

func load(t *testing.T, corpus, id string) *export.Program {
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

// A node put behind the user's output takes its place in graph and signature; the original program stays.
func TestEditor(t *testing.T) {
	p := load(t, "edge-public", "bn-train-c")
	before := p.String()
	e := p.Edit()
	var old *export.Value
	for i, s := range e.Parts().Signature.Outputs {
		if s.Kind == export.UserOutput {
			old, _ = e.Graph().Outputs[i].(*export.Value)
		}
	}
	n, err := e.InsertBefore(nil, aten.Builtin().Lookup("aten.neg.default"), old)
	if err != nil {
		t.Fatal(err)
	}
	neg := n.Outputs[0].(*export.Value)
	e.ReplaceAllUses(old, neg, n)
	if err := e.Erase(old.Def); err == nil || !strings.Contains(err.Error(), "still uses it") {
		t.Errorf("a used node was erased: %v", err)
	}
	q, err := e.Program()
	if err != nil {
		t.Fatal(err)
	}
	if out := q.Signature().UserOutputs(); out[len(out)-1] != neg.Name {
		t.Errorf("user outputs %v, want %s", out, neg.Name)
	}
	if len(q.Signature().BuffersToMutate()) != len(p.Signature().BuffersToMutate()) {
		t.Error("mutations are gone")
	}
	if p.String() != before {
		t.Error("the edited program changed")
	}

	e = q.Edit()
	e.ReplaceAllUses(e.Find(neg.Name), e.Find(old.Name))
	for _, n := range e.Graph().Nodes {
		if n.Name == neg.Name {
			if err := e.Erase(n); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	r, err := e.Program()
	if err != nil {
		t.Fatal(err)
	}
	if r.String() != before {
		t.Errorf("put back, the program prints differently:\n%s\n%s", r, before)
	}
}

func TestEditorRefusals(t *testing.T) {
	e := load(t, "edge-public", "bn-train-c").Edit()
	var arg *export.ArgumentError
	neg := aten.Builtin().Lookup("aten.neg.default")
	if _, err := e.InsertBefore(&export.Node{Name: "stranger"}, neg, e.Graph().Values[0]); !errors.As(err, &arg) {
		t.Error(err)
	}
	if _, err := e.InsertBefore(nil, neg, e.Graph().Values[0], int64(1)); !errors.As(err, &arg) {
		t.Error(err)
	}
	if err := e.Erase(&export.Node{Name: "stranger"}); !errors.As(err, &arg) {
		t.Error(err)
	}
	// What leaves no definition for its users is no program.
	e.Graph().Nodes = e.Graph().Nodes[1:]
	var spec *export.SpecError
	if _, err := e.Program(); !errors.As(err, &spec) {
		t.Error(err)
	}
}

func TestExampleInputs(t *testing.T) {
	p := load(t, "edge-public", "bn-train-t")
	ex, ok := p.ExampleInputs()
	if !ok {
		t.Fatal("no example inputs")
	}
	if _, err := p.WithExampleInputs(&export.Example{Args: append([]any{int64(1)}, ex.Args...)}); err == nil {
		t.Error("another structure was taken")
	}
	q, err := p.WithExampleInputs(ex)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := q.ExampleInputs(); !ok {
		t.Error("the example inputs are gone")
	}
	if q, err = p.WithExampleInputs(nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := q.ExampleInputs(); ok {
		t.Error("nil kept them")
	}
}
