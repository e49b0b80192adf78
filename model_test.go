package pt2_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/tensor"
)

func TestSignature(t *testing.T) {
	m := open(t, scorer)
	want := pt2.Signature{
		Inputs: []pt2.Port{
			{Name: "features", Kind: "tensor", DType: "float32", Sizes: []string{"s97", "4"}},
			{Name: "options['bias']", Kind: "tensor", DType: "float32", Sizes: []string{"3"}},
			{Name: "temperature", Kind: "tensor", DType: "float32", Sizes: []string{}},
		},
		Outputs: []pt2.Port{
			{Name: "softmax", Kind: "tensor", DType: "float32", Sizes: []string{"s97", "3"}},
			{Name: "argmax", Kind: "tensor", DType: "int64", Sizes: []string{"s97"}},
		},
		Ranges: map[string]string{"s97": "VR[1, 64]"},
	}
	if got := m.Signature(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	s := open(t, oldCase(t, "v2.15.0-scal")+"/model.pt2").Signature()
	var names []string
	for _, p := range s.Inputs {
		names = append(names, fmt.Sprintf("%s: %s %v", p.Name, p.Kind, p.Value))
	}
	if got := strings.Join(names, ", "); got != "x: tensor <nil>, i: constant 3, f: constant 0.5, b: constant true, mode: constant twice, n: constant <nil>" {
		t.Error(got)
	}
	s = open(t, oldCase(t, "v2.15.0-symar")+"/model.pt2").Signature()
	if len(s.Ranges) == 0 || s.Outputs[len(s.Outputs)-1].Kind != "int" && s.Outputs[0].Kind != "int" {
		t.Errorf("an int among the outputs: %+v", s)
	}
}

func TestRunNamed(t *testing.T) {
	m := open(t, scorer)
	x, _ := tensor.FromSlice([]float32{1, 0, 0, 1, -1, 2, 0, -2}, 2, 4)
	bias, _ := tensor.FromSlice([]float32{0, 0.5, 0}, 3)
	in := map[string]any{"features": x, "options['bias']": bias, "temperature": tensor0(2)}
	out, err := m.RunNamed(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := round(out["softmax"]); got != "0.1945 0.3726 0.4329 0.3674 0.3863 0.2463" || len(out) != 2 {
		t.Errorf("got %v", out)
	}
	again, err := m.RunNamed(context.Background(), map[string]any{"features": [2][4]float64{{1, 0, 0, 1}, {-1, 2, 0, -2}}, "options['bias']": []float32{0, 0.5, 0}, "temperature": 2})
	if err != nil || round(again["softmax"]) != round(out["softmax"]) {
		t.Errorf("Go values: %v %v", again, err)
	}
	if _, err := m.RunNamed(context.Background(), map[string]any{"features": "x", "options['bias']": bias, "temperature": 2}); err == nil || !strings.Contains(err.Error(), `input "features": want a float32 tensor`) {
		t.Error(err)
	}
	delete(in, "temperature")
	if _, err := m.RunNamed(context.Background(), in); err == nil || !strings.Contains(err.Error(), `"temperature" is missing`) {
		t.Error(err)
	}
	in["heat"] = nil
	in["temperature"] = tensor0(2)
	if _, err := m.RunNamed(context.Background(), in); err == nil || !strings.Contains(err.Error(), `no input is called "heat"`) {
		t.Error(err)
	}
}

// Warmup leaves no trace in the buffers, and the first call finds its plan and memory ready.
func TestWarmup(t *testing.T) {
	m := open(t, scorer)
	if err := m.Warmup(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m.Memory().Idle == 0 {
		t.Error("nothing is ready for the first call")
	}
	dir := oldCase(t, "v2.15.0-count")
	s := open(t, dir+"/model.pt2")
	if err := s.Warmup(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, c := range calls(t, dir) {
		out, err := s.Run(context.Background(), conformance.CloneInputs(c.Inputs)...)
		if err == nil {
			err = conformance.Compare(out, c.Outputs, tolerance)
		}
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Warmup(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMemoryOptions(t *testing.T) {
	m := open(t, pnet+"/model.pt2", pt2.WithMemoryLimit(1<<20), pt2.WithIdleTimeout(0))
	var limit *pt2.LimitError
	if _, err := m.RunTensors(context.Background(), tensor.New(tensor.Float32, 1, 3, 400, 400)); !errors.As(err, &limit) || limit.Limit != 1<<20 {
		t.Errorf("a picture that needs more than a mebibyte: %v", err)
	}
	if _, err := m.RunTensors(context.Background(), tensor.New(tensor.Float32, 1, 3, 32, 32)); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(10 * time.Second); m.Memory().Idle != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("kept: %+v", m.Memory())
		}
	}
	for name, o := range map[string]pt2.Option{"limit": pt2.WithMemoryLimit(0), "runners": pt2.WithRunners(0), "threads": pt2.WithThreads(0)} {
		if _, err := pt2.Load(scorer, o); err == nil {
			t.Errorf("%s of 0", name)
		}
	}
	if _, err := pt2.Load(scorer, pt2.WithProgram("none")); err == nil {
		t.Error("no such program")
	}
}

// A waiting call gives up when its context ends.
func TestRunnersAndContext(t *testing.T) {
	m := open(t, scorer, pt2.WithRunners(1))
	x := tensor.New(tensor.Float32, 1, 4)
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if err := m.Call(ctx, nil, x, map[string]any{"bias": []float32{0, 0, 0}}, pt2.Kwargs{"temperature": 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestSingleThreaded(t *testing.T) {
	m := open(t, scorer, pt2.SingleThreaded(), pt2.WithRunners(1), pt2.WithDeviceIndex(-1))
	in := []any{tensor.New(tensor.Float32, 64, 4), tensor.New(tensor.Float32, 3), tensor0(1)}
	if _, err := m.Run(context.Background(), in...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var refused atomic.Bool
	for range 4 { // until two calls meet
		wg.Go(func() {
			for ctx.Err() == nil && !refused.Load() {
				_, err := m.Run(ctx, in...)
				if errors.Is(err, pt2.ErrBusy) {
					refused.Store(true)
				} else if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if !refused.Load() {
		t.Error("no call was refused")
	}
	if _, err := pt2.Load(scorer, pt2.SingleThreaded(), pt2.WithRunners(2)); err == nil || !strings.Contains(err.Error(), "num_runners must be 1") {
		t.Error(err)
	}
	if _, err := pt2.Load(scorer, pt2.WithDeviceIndex(0)); err == nil || !strings.Contains(err.Error(), "CPU") {
		t.Error(err)
	}
}

// After Close the mapped weights are gone: every use is an error, none a crash; Close waits for calls that have begun.
func TestClose(t *testing.T) {
	m := open(t, pnet+"/model.pt2")
	other, err := m.Instance()
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.New(tensor.Float32, 1, 3, 64, 64)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := m.Run(context.Background(), x); err != nil {
					if !errors.Is(err, pt2.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	out, err := other.Run(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := m.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_ = out[0].(*tensor.Tensor).String()
	_, err1 := other.Run(context.Background(), x)
	_, err2 := m.Instance()
	err3 := m.LoadStateDict(nil)
	err4 := m.Call(context.Background(), nil, x)
	err5 := m.Warmup(context.Background())
	_, err6 := m.Plan(x)
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if !errors.Is(err, pt2.ErrClosed) || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("use %d of a closed model: %v", i+1, err)
		}
	}
	m.Reset()
	m.Trim()
	_ = m.Snapshot()
	_ = m.Signature()
}
