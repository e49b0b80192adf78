package interp_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/tensor"
)

var update = flag.Bool("update", false, "write the goldens anew")

// load makes a module of a model of the zoo, and reads its recorded calls.
func load(t *testing.T, name string, opts interp.Options) (*interp.Module, []conformance.Call) {
	t.Helper()
	p, calls := testCase(t, "zoo-selection", name)
	return newModule(t, p, opts), calls
}

// TestPlanGoldens holds the plans of some models as text. -update writes them anew.
func TestPlanGoldens(t *testing.T) {
	for _, name := range []string{"timm-test_resnet", "hf-bert-seqcls", "nn-gqa-rope", "nn-lstm-proj-states", "nn-unet3d-core", "nn-views-inplace", "tv-vit-convstem"} {
		t.Run(name, func(t *testing.T) {
			m, calls := load(t, name, interp.Options{})
			p, err := m.Plan(calls[0].Inputs...)
			if err != nil || p == nil {
				t.Fatalf("no plan: %v", err)
			}
			again, _ := load(t, name, interp.Options{})
			q, err := again.Plan(calls[0].Inputs...)
			if err != nil || q.String() != p.String() {
				t.Errorf("the same program has another plan the second time: %v\n%s\n%s", err, p, q)
			}
			golden := filepath.Join("testdata", "plans", name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, []byte(p.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if p.String() != string(want) {
				t.Errorf("the plan has changed; go test ./interp -run TestPlanGoldens -update writes it anew\n%s", p)
			}
		})
	}
}

// TestConcurrentShapes calls one module from several goroutines with different sizes at the same time.
func TestConcurrentShapes(t *testing.T) {
	for _, name := range []string{"nn-encoder-prenorm-gelu-pad", "nn-upsample-dynamic", "nn-gqa-rope", "hf-roberta-token"} {
		m, calls := load(t, name, interp.Options{})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range 3 * len(calls) {
					c := calls[(i+g)%len(calls)]
					out, err := m.Run(context.Background(), conformance.CloneInputs(c.Inputs)...)
					if c.Failed {
						continue
					}
					if err == nil {
						err = conformance.Compare(out, c.Outputs, conformance.Tolerance{RTol: 1e-3, ATol: 1e-4})
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}()
		}
		wg.Wait()
	}
}

// TestOutputsAreTheCallers: what a run returned is not touched by later runs.
func TestOutputsAreTheCallers(t *testing.T) {
	m, calls := load(t, "timm-test_resnet", interp.Options{})
	run := func() *tensor.Tensor {
		out, err := m.Run(context.Background(), calls[0].Inputs...)
		if err != nil {
			t.Fatal(err)
		}
		return out[0].(*tensor.Tensor)
	}
	first := run()
	kept := append([]float32(nil), tensor.Contiguous[float32](first)...)
	for range 3 {
		for i := range tensor.Contiguous[float32](run()) {
			if v := tensor.Contiguous[float32](first)[i]; v != kept[i] {
				t.Fatalf("element %d of an earlier result became %v, was %v", i, v, kept[i])
			}
		}
	}
}

// TestSwappedWeights: plans forget what they made of weights that are replaced.
func TestSwappedWeights(t *testing.T) {
	m, calls := load(t, "timm-test_resnet", interp.Options{})
	eager, _ := load(t, "timm-test_resnet", interp.Options{Eager: true})
	ctx := context.Background()
	for round := range 3 {
		want, err := eager.Run(ctx, calls[0].Inputs...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Run(ctx, calls[0].Inputs...)
		if err != nil {
			t.Fatal(err)
		}
		if err := conformance.Compare(got, want, conformance.Tolerance{RTol: 1e-4, ATol: 1e-4}); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		next := map[string]*tensor.Tensor{}
		for name, w := range m.Program().NamedParameters() {
			c := tensor.New(w.DType(), w.Sizes()...)
			for i := range w.Numel() {
				if err := c.SetFloat(i, w.Float(i)*(1+0.1*float64(round+1))); err != nil {
					t.Fatal(err)
				}
			}
			next[name] = c
		}
		for _, x := range []*interp.Module{m, eager} {
			if err := x.LoadStateDict(next); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// BenchmarkCompile makes the plan of a transformer, packing of its weights included.
func BenchmarkCompile(b *testing.B) {
	p, calls := testCase(b, "zoo-selection", "hf-bert-seqcls")
	n := 0
	for b.Loop() {
		b.StopTimer()
		m := newModule(b, p, interp.Options{})
		b.StartTimer()
		plan, err := m.Plan(calls[0].Inputs...)
		if err != nil || plan == nil {
			b.Fatalf("no plan: %v", err)
		}
		n = plan.Len()
	}
	b.ReportMetric(float64(len(p.Graph().Nodes)), "nodes")
	b.ReportMetric(float64(n), "instructions")
}
