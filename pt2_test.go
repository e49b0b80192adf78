package pt2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/guards"
	"github.com/pt2go/pt2/tensor"
)

const pnet = "testdata/real-public/mtcnn-pnet"

var (
	oldDir     string
	unpackOnce sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if oldDir != "" {
		os.RemoveAll(filepath.Dir(oldDir))
	}
	os.Exit(code)
}

// oldCase is the folder of one case of the old-public corpus, which is unpacked once.
func oldCase(t testing.TB, id string) string {
	t.Helper()
	unpackOnce.Do(func() {
		dir, err := os.MkdirTemp("", "pt2-test-")
		if err != nil {
			t.Fatal(err)
		}
		if oldDir, err = conformance.Unpack("testdata/old-public.tar.zst", dir); err != nil {
			t.Fatal(err)
		}
	})
	return filepath.Join(oldDir, id)
}

func calls(t *testing.T, dir string) []conformance.Call {
	t.Helper()
	c, err := conformance.ReadCalls(filepath.Join(dir, "expected.pt"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var tolerance = conformance.Tolerance{RTol: 1e-3, ATol: 1e-4}

func TestConcurrentCalls(t *testing.T) {
	m, err := pt2.Load(pnet+"/model.pt2", pt2.WithRunners(3), pt2.WithThreads(2))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := calls(t, pnet)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range want {
				c := &want[(i+g)%len(want)]
				if c.Failed {
					continue
				}
				out, err := m.Run(context.Background(), conformance.CloneInputs(c.Inputs)...)
				if err == nil {
					err = conformance.Compare(out, c.Outputs, tolerance)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWaysToLoad(t *testing.T) {
	b, err := os.ReadFile(pnet + "/model.pt2")
	if err != nil {
		t.Fatal(err)
	}
	want := calls(t, pnet)[0]
	for name, load := range map[string]func() (*pt2.Model, error){
		"bytes":  func() (*pt2.Model, error) { return pt2.LoadBytes(b) },
		"fs":     func() (*pt2.Model, error) { return pt2.LoadFS(os.DirFS(pnet), "model.pt2") },
		"reader": func() (*pt2.Model, error) { return pt2.LoadReader(bytes.NewReader(b), int64(len(b))) },
		"eager":  func() (*pt2.Model, error) { return pt2.LoadBytes(b, pt2.WithEager()) },
	} {
		m, err := load()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, err := m.Run(context.Background(), want.Inputs...)
		if err == nil {
			err = conformance.Compare(out, want.Outputs, tolerance)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m.Close()
	}
}

// A program with a counter buffer: instances count for themselves, Reset and Restore go back.
func TestState(t *testing.T) {
	dir := oldCase(t, "v2.15.0-count")
	m, err := pt2.Load(dir + "/model.pt2")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.Stateful() {
		t.Fatal("the program changes a buffer, but the model says it is not stateful")
	}
	c := calls(t, dir)
	run := func(m *pt2.Model, i int) {
		t.Helper()
		out, err := m.Run(context.Background(), conformance.CloneInputs(c[i].Inputs)...)
		if err == nil {
			err = conformance.Compare(out, c[i].Outputs, tolerance)
		}
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	run(m, 0)
	snap := m.Snapshot()
	run(m, 1)
	if err := m.Restore(snap); err != nil {
		t.Fatal(err)
	}
	run(m, 1)
	other, err := m.Instance()
	if err != nil {
		t.Fatal(err)
	}
	run(other, 0)
	m.Reset()
	run(m, 0)
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	m, err := pt2.Load(pnet + "/model.pt2")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := tensor.New(tensor.Float32, 1, 4, 30, 30)
	var guard *guards.Error
	if _, err := m.Run(context.Background(), x); !errors.As(err, &guard) {
		t.Errorf("four channels instead of three: %v", err)
	}
	var input *guards.InputError
	if _, err := m.Run(context.Background(), tensor.New(tensor.Float32, 3)); !errors.As(err, &input) {
		t.Errorf("one dimension instead of four: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Run(ctx, tensor.New(tensor.Float32, 1, 3, 30, 30)); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: %v", err)
	}
	if _, err := pt2.LoadBytes([]byte("\x80\x02}q\x00.")); !errors.Is(err, archive.ErrNotPT2) {
		t.Errorf("a pickle: %v", err)
	}
}

func TestLoadStateDict(t *testing.T) {
	m, err := pt2.Load(pnet + "/model.pt2")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	zero := map[string]*tensor.Tensor{}
	for name, w := range m.Program().NamedParameters() {
		zero[name] = tensor.New(w.DType(), w.Sizes()...)
	}
	c := calls(t, pnet)[0]
	if err := m.LoadStateDict(zero); err != nil {
		t.Fatal(err)
	}
	out, err := m.Run(context.Background(), c.Inputs...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := out[0].(*tensor.Tensor).Floats()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range v {
		if x != 0 && x != 0.5 {
			t.Fatalf("a net of zeros answers %v", x)
		}
	}
	if err := m.LoadStateDict(map[string]*tensor.Tensor{"nope": tensor.New(tensor.Float32, 1)}); err == nil {
		t.Error("an unknown name was accepted")
	}
}

func ExampleLoad() {
	m, err := pt2.Load("testdata/real-public/mtcnn-pnet/model.pt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	x := tensor.New(tensor.Float32, 1, 3, 32, 32)
	out, err := m.RunTensors(context.Background(), x)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out[0].DType(), out[0].Sizes())
	// Output: float32 [1 4 11 11]
}
