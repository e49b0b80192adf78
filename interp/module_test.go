package interp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
)

var (
	unpacked sync.Map // corpus -> func() string
	tempDir  string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "interp-test-")
	if err != nil {
		panic(err)
	}
	tempDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// testCase is a case of a corpus: its program and PyTorch's calls.
func testCase(t testing.TB, corpus, id string) (*export.Program, []conformance.Call) {
	t.Helper()
	once, _ := unpacked.LoadOrStore(corpus, sync.OnceValue(func() string {
		dir, err := conformance.Unpack(filepath.Join(golden.Root(t), "testdata", corpus+".tar.zst"), tempDir)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}))
	dir := filepath.Join(once.(func() string)(), id)
	c, err := loader.Open(filepath.Join(dir, "model.pt2"), loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p, err := c.Program("")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := conformance.ReadCalls(filepath.Join(dir, "expected.pt"))
	if err != nil {
		t.Fatal(err)
	}
	return p, calls
}

func newModule(t testing.TB, p *export.Program, opts interp.Options) *interp.Module {
	t.Helper()
	m, err := interp.New(p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t testing.TB, m *interp.Module, in ...any) []any {
	t.Helper()
	out, err := m.Run(context.Background(), in...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// agree makes one recorded call and compares.
func agree(t testing.TB, m *interp.Module, c *conformance.Call) {
	t.Helper()
	same(t, run(t, m, conformance.CloneInputs(c.Inputs)...), c.Outputs)
}

func same(t testing.TB, got, want []any) {
	t.Helper()
	if err := conformance.Compare(got, want, conformance.Tolerance{RTol: 1e-4, ATol: 1e-5}); err != nil {
		t.Error(err)
	}
}

// both runs a test in either mode.
func both(t *testing.T, f func(t *testing.T, opts interp.Options)) {
	t.Run("planned", func(t *testing.T) { f(t, interp.Options{}) })
	t.Run("eager", func(t *testing.T) { f(t, interp.Options{Eager: true}) })
}

func TestInputMutation(t *testing.T) {
	for _, id := range []string{"v2.15.0-inmut", "v2.15.0-inmut-core"} {
		p, calls := testCase(t, "old-public", id)
		both(t, func(t *testing.T, opts interp.Options) {
			m := newModule(t, p, opts)
			if m.Stateful() {
				t.Error("the program changes its input, not its state")
			}
			for range 2 { // the second time by a frame that was used before
				in := conformance.CloneInputs(calls[0].Inputs)
				same(t, run(t, m, in...), calls[0].Outputs)
				x, y := in[0].(*tensor.Tensor), in[1].(*tensor.Tensor)
				for i := range x.Numel() {
					// forward does x.add_(y)
					want := float32(calls[0].Inputs[0].(*tensor.Tensor).Float(i)) + float32(y.Float(i))
					if float32(x.Float(i)) != want {
						t.Errorf("%s: x[%d] is %v, want %v", id, i, x.Float(i), want)
					}
				}
			}
		})
	}
}

// Outputs that look at inputs share their memory, as in PyTorch; no output shares memory with a later run.
func TestAliasingOutputs(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-views")
	both(t, func(t *testing.T, opts interp.Options) {
		m := newModule(t, p, opts)
		in := conformance.CloneInputs(calls[0].Inputs)
		out := run(t, m, in...)
		x, slice, sum := in[0].(*tensor.Tensor), out[0].(*tensor.Tensor), out[2].(*tensor.Tensor)
		if slice.Storage() != x.Storage() {
			t.Error("x.transpose(0, 1)[1:, ::2] is a copy")
		}
		tensor.Data[float32](x)[1] = 42 // x[0, 1]
		if slice.Float(0) != 42 {
			t.Errorf("slice[0, 0] is %v", slice.Float(0))
		}
		before := sum.Float(0)
		second := run(t, m, conformance.CloneInputs(calls[0].Inputs)...)
		tensor.Data[float32](second[2].(*tensor.Tensor))[0] = -1
		if sum.Float(0) != before {
			t.Error("a later run wrote into an output that the caller has")
		}
		same(t, run(t, m, conformance.CloneInputs(calls[0].Inputs)...), calls[0].Outputs)
	})
}

func TestBuffers(t *testing.T) {
	for _, id := range []string{"v2.15.0-count", "v2.15.0-count-core", "v2.1.2-count", "v2.5.1-count"} {
		p, calls := testCase(t, "old-public", id)
		both(t, func(t *testing.T, opts interp.Options) {
			m := newModule(t, p, opts)
			for i := range calls {
				agree(t, m, &calls[i])
			}
			m.Reset()
			agree(t, m, &calls[0])
			snap := m.Snapshot()
			agree(t, m, &calls[1])
			if err := m.Restore(snap); err != nil {
				t.Fatal(err)
			}
			agree(t, m, &calls[1])
			agree(t, m, &calls[2])
			fresh, err := m.Instance()
			if err != nil {
				t.Fatal(err)
			}
			agree(t, fresh, &calls[0])
			if err := fresh.Restore(snap); err != nil { // states move between instances
				t.Fatal(err)
			}
			agree(t, fresh, &calls[1])
		})
	}
	p, _ := testCase(t, "old-public", "v2.15.0-count")
	q, _ := testCase(t, "old-public", "v2.15.0-count-core")
	if err := newModule(t, p, interp.Options{}).Restore(newModule(t, q, interp.Options{}).Snapshot()); err == nil {
		t.Error("a snapshot of another program was taken")
	}
}

// A call that fails or is canceled half way leaves nothing behind that a later call could see in its outputs.
func TestCancellation(t *testing.T) {
	p, calls := testCase(t, "zoo-selection", firstOf(t, "zoo-selection"))
	both(t, func(t *testing.T, opts interp.Options) {
		m := newModule(t, p, opts)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := m.Run(ctx, conformance.CloneInputs(calls[0].Inputs)...); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled before: %v", err)
		}
		for d := time.Microsecond; d < 5*time.Millisecond; d *= 3 {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			_, err := m.Run(ctx, conformance.CloneInputs(calls[0].Inputs)...)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v", d, err)
			}
		}
		tol := conformance.Tolerance{RTol: 1e-3, ATol: 1e-4}
		if err := conformance.Compare(run(t, m, conformance.CloneInputs(calls[0].Inputs)...), calls[0].Outputs, tol); err != nil {
			t.Error(err)
		}
	})
}

func firstOf(t *testing.T, corpus string) (id string) {
	golden.EachModel(t, corpus, func(name string, _ []byte) bool { id = name; return false })
	return id
}

func TestConcurrentCallsOfOneModule(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-dyn")
	both(t, func(t *testing.T, opts interp.Options) {
		m := newModule(t, p, opts)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 20 {
					c := &calls[(g+i)%len(calls)]
					out, err := m.Run(context.Background(), conformance.CloneInputs(c.Inputs)...)
					if c.Failed {
						if err == nil {
							t.Error("no error")
						}
						continue
					}
					if err == nil {
						err = conformance.Compare(out, c.Outputs, conformance.Tolerance{RTol: 1e-4, ATol: 1e-5})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// Calls of a stateful module take turns: each sees what some other left, and none is lost.
func TestConcurrentCallsTakeTurns(t *testing.T) {
	p, _ := testCase(t, "old-public", "v2.15.0-count")
	both(t, func(t *testing.T, opts interp.Options) {
		m := newModule(t, p, opts)
		const n = 40
		var wg sync.WaitGroup
		zero := tensor.New(tensor.Float32, 3) // forward(x) gives x*n + m after m = m*0.5 + sum(x), so that m goes to 0
		for range 4 {
			wg.Go(func() {
				for range n / 4 {
					if _, err := m.Run(context.Background(), zero); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		one := tensor.New(tensor.Float32, 3)
		copy(tensor.Data[float32](one), []float32{1, 0, 0})
		out := run(t, m, one)
		// the counter is n+1, the mean 0*0.5 + 1
		if got := out[0].(*tensor.Tensor).Float(0); got != n+2 {
			t.Errorf("after %d calls the counter shows in %v, want %d", n, got, n+2)
		}
	})
}

// New weights reach calls that begin later, of this module and no other.
func TestLoadStateDict(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-mlp")
	both(t, func(t *testing.T, opts interp.Options) {
		m := newModule(t, p, opts)
		old, err := m.Instance()
		if err != nil {
			t.Fatal(err)
		}
		agree(t, m, &calls[0])
		zero := map[string]*tensor.Tensor{}
		for name, w := range p.NamedParameters() {
			zero[name] = tensor.New(w.DType(), w.Sizes()...)
		}
		if err := m.LoadStateDict(zero); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for i, v := range mustFloats(t, run(t, m, conformance.CloneInputs(calls[0].Inputs)...)[0]) {
				if v != 0 {
					t.Fatalf("weights of zero give %v at %d", v, i)
				}
			}
			agree(t, old, &calls[0]) // an instance of its own weights
		}
		fresh, err := m.Instance()
		if err != nil {
			t.Fatal(err)
		}
		if v := mustFloats(t, run(t, fresh, conformance.CloneInputs(calls[0].Inputs)...)[0]); v[0] != 0 {
			t.Errorf("an instance made after the change has the old weights: %v", v)
		}
		// All or nothing.
		bad := map[string]*tensor.Tensor{}
		for name, w := range p.NamedParameters() {
			bad[name] = w
		}
		bad["none"] = tensor.New(tensor.Float32, 1)
		if err := m.LoadStateDict(bad); err == nil || !strings.Contains(err.Error(), `"none"`) {
			t.Errorf("an unknown name: %v", err)
		}
		if v := mustFloats(t, run(t, m, conformance.CloneInputs(calls[0].Inputs)...)[0]); v[0] != 0 {
			t.Error("a refused state changed the module")
		}
		for name := range zero {
			wrong := map[string]*tensor.Tensor{name: tensor.New(tensor.Float32, 1, 2, 3)}
			if err := m.LoadStateDict(wrong); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("wrong sizes: %v", err)
			}
		}
	})
}

// While weights change, every call sees the old ones or the new ones as a whole.
func TestLoadStateDictIsAtomic(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-mlp")
	m := newModule(t, p, interp.Options{})
	weights := map[string]*tensor.Tensor{}
	zero := map[string]*tensor.Tensor{}
	for name, w := range p.NamedParameters() {
		weights[name], zero[name] = w, tensor.New(w.DType(), w.Sizes()...)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				out := run(t, m, conformance.CloneInputs(calls[0].Inputs)...)
				v := mustFloats(t, out[0])
				allZero := true
				for _, x := range v {
					allZero = allZero && x == 0
				}
				if allZero {
					continue
				}
				if err := conformance.Compare(out, calls[0].Outputs, conformance.Tolerance{RTol: 1e-4, ATol: 1e-5}); err != nil {
					t.Errorf("neither the old nor the new weights: %v", err)
					return
				}
			}
		})
	}
	for i := range 20 {
		state := zero
		if i%2 == 1 {
			state = weights
		}
		if err := m.LoadStateDict(state); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	agree(t, m, &calls[0])
}

// Loaded buffers are what Reset goes back to.
func TestLoadStateDictOfBuffers(t *testing.T) {
	p, _ := testCase(t, "old-public", "v2.15.0-count")
	m := newModule(t, p, interp.Options{})
	n := tensor.New(tensor.Int64)
	tensor.Data[int64](n)[0] = 100
	if err := m.LoadStateDict(map[string]*tensor.Tensor{"n": n}); err != nil {
		t.Fatal(err)
	}
	one := tensor.New(tensor.Float32, 3)
	tensor.Data[float32](one)[0] = 1
	for _, want := range []float64{102.5, 103.75} { // the mean m begins at 1: x*101 + (1*0.5 + 1), then x*102 + (1.5*0.5 + 1)
		if got := run(t, m, one)[0].(*tensor.Tensor).Float(0); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	m.Reset()
	if got := run(t, m, one)[0].(*tensor.Tensor).Float(0); got != 102.5 {
		t.Errorf("after Reset: %v, want 102.5", got)
	}
	fresh, err := m.Instance()
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, fresh, one)[0].(*tensor.Tensor).Float(0); got != 102.5 {
		t.Errorf("a new instance: %v, want 102.5", got)
	}
}

func mustFloats(t testing.TB, x any) []float64 {
	t.Helper()
	v, err := x.(*tensor.Tensor).Floats()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWrongCalls(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-mlp")
	both(t, func(t *testing.T, opts interp.Options) {
		m := newModule(t, p, opts)
		for name, in := range map[string][]any{"none": nil, "too many": append(conformance.CloneInputs(calls[0].Inputs), 1), "nil": {nil}, "text": {"x"},
			"another type": {struct{}{}}, "nil tensor": {(*tensor.Tensor)(nil)}, "half": {tensor.New(tensor.Float16, 1)}} {
			if out, err := m.Run(context.Background(), in...); err == nil {
				t.Errorf("%s: %v", name, out)
			}
		}
		agree(t, m, &calls[0])
	})
}

// A weight under two names stays one weight.
func TestLoadStateDictOfTiedWeights(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-tied")
	m := newModule(t, p, interp.Options{})
	names := map[*tensor.Storage][]string{}
	for name, w := range p.NamedParameters() {
		names[w.Storage()] = append(names[w.Storage()], name)
	}
	one := map[string]*tensor.Tensor{}
	for st, n := range names {
		for name, w := range p.NamedParameters() {
			if len(n) > 1 && w.Storage() == st && len(one) == 0 {
				one[name] = tensor.New(w.DType(), w.Sizes()...)
			}
		}
	}
	if len(one) != 1 {
		t.Fatal("the archive has tied weights under one name only")
	}
	if err := m.LoadStateDict(one); err != nil {
		t.Fatal(err)
	}
	for _, v := range mustFloats(t, run(t, m, conformance.CloneInputs(calls[0].Inputs)...)[0]) {
		if v != 0 {
			t.Fatalf("the other name kept the old weight: %v", v)
		}
	}
}
