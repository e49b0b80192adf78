package aten

import (
	"math"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// Sums over outer dimensions add whole rows; other reductions of the same shape must not be taken for sums.
func TestReductionsOverColumns(t *testing.T) {
	const rows, cols = 3, 40
	data := make([]float32, rows*cols)
	for i := range data {
		data[i] = float32(i%7) - 3
	}
	data[5] = float32(math.NaN())
	x, err := tensor.FromSlice(data, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	b := eager()
	for name, c := range map[string]struct {
		got  *Value
		fold func(s, v float64) float64
	}{
		"sum":    {b.Call("sum.dim_IntList", x, []int64{0}), func(s, v float64) float64 { return s + v }},
		"norm 1": {b.Call("linalg_vector_norm", x, 1, []int64{0}), func(s, v float64) float64 { return s + math.Abs(v) }},
		"nansum": {b.Call("nansum", x, []int64{0}), func(s, v float64) float64 {
			if v != v {
				return s
			}
			return s + v
		}},
	} {
		got := tensor.Contiguous[float32](c.got.T)
		for j := range cols {
			want := 0.0
			for i := range rows {
				want = c.fold(want, float64(data[i*cols+j]))
			}
			if !sameNumber(float64(got[j]), want) {
				t.Errorf("%s: column %d is %v, want %v", name, j, got[j], want)
			}
		}
	}
}

// A target that is the beginning of a longer tensor ends where the view ends.
func TestLossOfTargetsInALongerTensor(t *testing.T) {
	b := eager()
	x, _ := tensor.FromSlice([]float32{-1, -2, -3, -4}, 2, 2)
	all, _ := tensor.FromSlice([]int64{0, 1, 99, 99}, 4)
	target := b.Call("slice.Tensor", all, 0, 0, 2)
	if got := itemOf(b.Call("nll_loss", x, target).T).F; got != 2.5 { // the mean of 1 and 4
		t.Errorf("got %v, want 2.5", got)
	}
}
