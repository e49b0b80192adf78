package interp_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
)

// After a run the arena waits for the next one, until it is trimmed or nobody wants it for a while.
func TestMemoryIsGivenBack(t *testing.T) {
	p, calls := testCase(t, "zoo-selection", firstOf(t, "zoo-selection"))
	m := newModule(t, p, interp.Options{})
	run(t, m, conformance.CloneInputs(calls[0].Inputs)...)
	first := m.Memory()
	if first.Idle == 0 || first.Running != 0 {
		t.Errorf("after a run: %+v", first)
	}
	run(t, m, conformance.CloneInputs(calls[0].Inputs)...)
	if again := m.Memory(); again != first {
		t.Errorf("the second run did not use the frame of the first: %+v, then %+v", first, again)
	}
	m.Trim()
	if got := m.Memory(); got.Idle != 0 || got.Running != 0 {
		t.Errorf("trimmed: %+v", got)
	}
	quick := newModule(t, p, interp.Options{IdleTimeout: time.Millisecond})
	run(t, quick, conformance.CloneInputs(calls[0].Inputs)...)
	for end := time.Now().Add(10 * time.Second); quick.Memory().Idle != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still kept: %+v", quick.Memory())
		}
	}
	agreeLoosely(t, quick, &calls[0])
}

func agreeLoosely(t *testing.T, m *interp.Module, c *conformance.Call) {
	t.Helper()
	out := run(t, m, conformance.CloneInputs(c.Inputs)...)
	if err := conformance.Compare(out, c.Outputs, conformance.Tolerance{RTol: 1e-3, ATol: 1e-4}); err != nil {
		t.Error(err)
	}
}

// A limit that one run needs is enough for runs in turn, whatever their sizes; one that is too small is an error each time.
func TestMemoryLimit(t *testing.T) {
	p, calls := testCase(t, "zoo-selection", firstOf(t, "zoo-selection"))
	both(t, func(t *testing.T, opts interp.Options) {
		opts.MemoryLimit = 1 << 40
		m := newModule(t, p, opts)
		agreeLoosely(t, m, &calls[0])
		if got := m.Memory(); got.Running != 0 {
			t.Errorf("after a run: %+v", got)
		}
		for low, high := int64(1), opts.MemoryLimit; ; {
			// the least limit that works, to within 10%
			if high-low <= high/10 {
				if high == 1<<40 || high < 1000 {
					t.Errorf("the least limit is %d", high)
				}
				break
			}
			opts.MemoryLimit = low + (high-low)/2
			m := newModule(t, p, opts)
			_, err := m.Run(context.Background(), conformance.CloneInputs(calls[0].Inputs)...)
			var limit *aten.LimitError
			switch {
			case err == nil:
				high = opts.MemoryLimit
			case errors.As(err, &limit):
				low = opts.MemoryLimit
				if limit.Limit != opts.MemoryLimit || limit.Used+limit.Need <= limit.Limit {
					t.Errorf("%+v", limit)
				}
			default:
				t.Fatal(err)
			}
			if got := m.Memory(); got.Running != 0 || got.Idle > opts.MemoryLimit {
				t.Errorf("limit %d, after a run (%v): %+v", opts.MemoryLimit, err, got)
			}
		}
	})
}

// Frames that wait for inputs of other sizes make room.
func TestIdleFramesMakeRoom(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-dyn")
	m := newModule(t, p, interp.Options{})
	most := int64(0)
	for i := range calls {
		if !calls[i].Failed {
			m.Trim()
			agree(t, m, &calls[i])
			most = max(most, m.Memory().Idle)
		}
	}
	const outputs = 4096
	m = newModule(t, p, interp.Options{MemoryLimit: most + outputs})
	for range 3 {
		for i := range calls {
			if !calls[i].Failed {
				agree(t, m, &calls[i])
			}
		}
	}
}

// Buffers count for as long as their instance lives.
func TestMemoryOfInstances(t *testing.T) {
	p, _ := testCase(t, "old-public", "v2.15.0-count")
	m := newModule(t, p, interp.Options{})
	one := m.Memory().State
	if one != 8+12 {
		t.Errorf("an int64 and three float32 take %d bytes", one)
	}
	func() {
		for range 10 {
			i, err := m.Instance()
			if err != nil {
				t.Fatal(err)
			}
			run(t, i, tensor.New(tensor.Float32, 3))
		}
	}()
	m.Trim()
	for end := time.Now().Add(10 * time.Second); m.Memory().State != one; time.Sleep(time.Millisecond) {
		runtime.GC()
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held, want %d", m.Memory().State, one)
		}
	}
	var limit *aten.LimitError
	if _, err := interp.New(p, interp.Options{MemoryLimit: one - 1}); !errors.As(err, &limit) {
		t.Errorf("a module whose buffers exceed the limit: %v", err)
	}
	small := newModule(t, p, interp.Options{MemoryLimit: one})
	if _, err := small.Instance(); !errors.As(err, &limit) {
		t.Errorf("an instance whose buffers exceed the limit: %v", err)
	}
}

// A program that asks for a huge tensor fails before it takes the memory.
func TestHugeTensors(t *testing.T) {
	p, calls := testCase(t, "old-public", "v2.15.0-item") // builds tensors of a size that is a value of the input
	for i := range calls {
		m := newModule(t, p, interp.Options{MemoryLimit: 1 << 20})
		_, err := m.Run(context.Background(), conformance.CloneInputs(calls[i].Inputs)...)
		if calls[i].Failed != (err != nil) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// Whatever a program does, with subgraphs, views, mutation, or an error half way, nothing stays counted as running.
func TestNothingStaysCounted(t *testing.T) {
	for _, corpus := range []string{"old-public", "edge-public", "suite-public"} {
		golden.EachModel(t, corpus, func(id string, model []byte) bool {
			c, err := loader.OpenBytes(model, loader.Options{})
			if err != nil {
				return true
			}
			defer c.Close()
			p := c.Programs[c.Names()[0]]
			for _, opts := range []interp.Options{{MemoryLimit: 1 << 30}, {MemoryLimit: 1 << 30, Eager: true}, {MemoryLimit: 3000, Eager: true}} {
				m, err := interp.New(p, opts)
				if err != nil {
					continue // an operator that is missing, or buffers beyond the limit
				}
				in, err := interp.ExampleLeaves(p)
				if err != nil {
					return true
				}
				_, err = m.Run(context.Background(), conformance.CloneInputs(in)...)
				var limit *aten.LimitError
				if errors.As(err, &limit) && opts.MemoryLimit > 3000 {
					t.Errorf("%s: %v", id, err)
				}
				if got := m.Memory(); got.Running != 0 || got.Idle < 0 || got.State < 0 {
					t.Errorf("%s with %+v (%v): %+v", id, opts, err, got)
				}
			}
			return true
		})
	}
}
