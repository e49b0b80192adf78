// Package conformance runs programs on recorded calls and holds the results against PyTorch's: the corpora that this
// library is tested with, and any expected.pt of the same form.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
)

// Case is one line of a corpus's manifest.
type Case struct {
	ID    string   `json:"id"`
	Torch string   `json:"torch"`
	Ops   []string `json:"ops"`
	RTol  float64  `json:"rtol"`
	ATol  float64  `json:"atol"`
	Tags  []string `json:"tags"`
	Calls int      `json:"calls"`
	Dir   string   `json:"-"`
}

// Has reports a tag.
func (c *Case) Has(tag string) bool {
	for _, t := range c.Tags {
		if t == tag {
			return true
		}
	}
	return false
}

// Program is the name of the program to run, from the tag program=NAME.
func (c *Case) Program() string {
	for _, t := range c.Tags {
		if n, ok := strings.CutPrefix(t, "program="); ok {
			return n
		}
	}
	return ""
}

// ReadManifest lists the cases of an unpacked corpus.
func ReadManifest(dir string) ([]Case, error) {
	b, err := os.ReadFile(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	var out []Case
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var c Case
		line = strings.ReplaceAll(line, ": Infinity", ": 1e308") // Python's JSON
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, fmt.Errorf("conformance: manifest line %d: %w", i+1, err)
		}
		c.Dir = filepath.Join(dir, c.ID)
		out = append(out, c)
	}
	return out, nil
}

// Call is one recorded call.
type Call struct {
	Inputs  []any
	Outputs []any
	Error   string // PyTorch's message, if the call fails there
	Failed  bool
}

// ReadCalls reads an expected.pt.
func ReadCalls(path string) ([]Call, error) {
	v, err := tensorio.LoadPT(path)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("conformance: %s holds a %T, want a list of calls", path, v)
	}
	out := make([]Call, len(list))
	for i, x := range list {
		d, ok := x.(*tensorio.Dict)
		if !ok {
			return nil, fmt.Errorf("conformance: %s: call %d is a %T, want a dict", path, i, x)
		}
		c := &out[i]
		if in, ok := d.Get("inputs"); ok {
			c.Inputs, _ = in.([]any)
		}
		if o, ok := d.Get("outputs"); ok {
			c.Outputs, _ = o.([]any)
		}
		if e, ok := d.Get("error"); ok {
			c.Error, _ = e.(string)
			c.Failed = true
		}
	}
	return out, nil
}

// CloneInputs copies a call's leaves, so that a program may change them. Leaves that share a storage go on sharing it.
func CloneInputs(in []any) []any {
	storages := map[*tensor.Storage]*tensor.Storage{}
	out := make([]any, len(in))
	for i, x := range in {
		t, ok := x.(*tensor.Tensor)
		if !ok {
			out[i] = x
			continue
		}
		st := storages[t.Storage()]
		if st == nil {
			st = tensor.NewStorage(len(t.Storage().Bytes()))
			copy(st.Bytes(), t.Storage().Bytes())
			storages[t.Storage()] = st
		}
		c, err := tensor.View(st, t.DType(), t.Sizes(), t.Strides(), t.Offset())
		if err != nil {
			panic(err) // t was valid over memory of the same size
		}
		out[i] = c.WithBits(t.IsConj(), t.IsNeg())
	}
	return out
}

// Result is the outcome of one case.
type Result struct {
	Case *Case
	Err  error // nil if all calls agree
}

// Run runs a case's calls in order on one module and compares.
func Run(c *Case, lo loader.Options, opts interp.Options) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	f, err := loader.Open(filepath.Join(c.Dir, "model.pt2"), lo)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := f.Program(c.Program())
	if err != nil {
		return err
	}
	m, err := interp.New(p, opts)
	if err != nil {
		return err
	}
	calls, err := ReadCalls(filepath.Join(c.Dir, "expected.pt"))
	if err != nil {
		return err
	}
	for i := range calls {
		out, err := m.Run(context.Background(), CloneInputs(calls[i].Inputs)...)
		if calls[i].Failed {
			if err == nil {
				return fmt.Errorf("call %d: no error, PyTorch says %q", i, calls[i].Error)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		tol := Tolerance{c.RTol, c.ATol, c.Has("not-unique")}
		if err := Compare(out, calls[i].Outputs, tol); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// Tolerance bounds the differences of floating-point outputs: |got - want| <= ATol + RTol*|want|.
type Tolerance struct {
	RTol, ATol float64
	ShapeOnly  bool // compare dtypes and shapes only: the values are not unique
}

// Compare holds outputs against PyTorch's, leaf by leaf.
func Compare(got, want []any, tol Tolerance) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs instead of %d", len(got), len(want))
	}
	for i := range want {
		if err := compareLeaf(got[i], want[i], tol); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

func compareLeaf(got, want any, tol Tolerance) error {
	w, ok := want.(*tensor.Tensor)
	if !ok {
		return compareNumber(got, want)
	}
	g, ok := got.(*tensor.Tensor)
	if !ok || g == nil {
		return fmt.Errorf("%T instead of a tensor", got)
	}
	if g.DType() != w.DType() {
		return fmt.Errorf("dtype %v instead of %v", g.DType(), w.DType())
	}
	if fmt.Sprint(g.Sizes()) != fmt.Sprint(w.Sizes()) {
		return fmt.Errorf("shape %v instead of %v", g.Sizes(), w.Sizes())
	}
	if tol.ShapeOnly {
		return nil
	}
	return compareElements(g, w, tol)
}

func compareNumber(got, want any) error {
	if w, ok := want.(float64); ok {
		g, ok := got.(float64)
		if i, isInt := got.(int64); isInt {
			g, ok = float64(i), true
		}
		if ok && (g == w || (g != g && w != w) || math.Abs(g-w) <= 1e-5*math.Max(1, math.Abs(w))) {
			return nil
		}
		return fmt.Errorf("%v instead of %v", got, want)
	}
	if got != want {
		return fmt.Errorf("%v (%T) instead of %v (%T)", got, got, want, want)
	}
	return nil
}

// widen copies a tensor into contiguous complex128 or int64.
func widen(t *tensor.Tensor, dt tensor.DType) *tensor.Tensor {
	c := tensor.New(dt, t.Sizes()...)
	aten.Copy(nil, c, t)
	return c
}

func compareElements(g, w *tensor.Tensor, tol Tolerance) error {
	if w.DType().IsIntegral() {
		a, b := tensor.Contiguous[int64](widen(g, tensor.Int64)), tensor.Contiguous[int64](widen(w, tensor.Int64))
		bad := 0
		first := -1
		for i := range b {
			if a[i] != b[i] {
				if bad++; first < 0 {
					first = i
				}
			}
		}
		if bad > 0 {
			return fmt.Errorf("wrong value: %d of %d elements differ, first at %d: %d instead of %d", bad, len(b), first, a[first], b[first])
		}
		return nil
	}
	a, b := tensor.Contiguous[complex128](widen(g, tensor.Complex128)), tensor.Contiguous[complex128](widen(w, tensor.Complex128))
	bad, worst, first := 0, 0.0, -1
	for i := range b {
		if close(a[i], b[i], tol) {
			continue
		}
		if bad++; first < 0 {
			first = i
		}
		worst = math.Max(worst, cmplx.Abs(a[i]-b[i]))
	}
	if bad > 0 {
		return fmt.Errorf("wrong value: %d of %d elements differ by up to %.3g, first at %d: %v instead of %v", bad, len(b), worst, first, a[first], b[first])
	}
	return nil
}

// isNaN is PyTorch's: one part is enough, whatever the other is.
func isNaN(x complex128) bool { return math.IsNaN(real(x)) || math.IsNaN(imag(x)) }

func close(a, b complex128, tol Tolerance) bool {
	if a == b || isNaN(a) && isNaN(b) {
		return true
	}
	if imag(a) == 0 && imag(b) == 0 && (math.IsInf(real(a), 0) || math.IsInf(real(b), 0)) {
		return false
	}
	return cmplx.Abs(a-b) <= tol.ATol+tol.RTol*cmplx.Abs(b)
}
