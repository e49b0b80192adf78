package aten

import (
	"slices"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// Values from PyTorch 2.15: a range without width grows by a half on each side, none at all is [0, 1].
func TestHistogramWithoutWidth(t *testing.T) {
	for _, c := range []struct{ x, edges []float32 }{
		{[]float32{3}, []float32{2.5, 3, 3.5}},
		{[]float32{3, 3}, []float32{2.5, 3, 3.5}},
		{nil, []float32{0, 0.5, 1}},
	} {
		x, err := tensor.FromSlice(c.x, int64(len(c.x)))
		if err != nil {
			t.Fatal(err)
		}
		out, err := Call("histogram.bin_ct", FromTensor(x), 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Data[float32](out[1].(*Value).T); !slices.Equal(got, c.edges) {
			t.Errorf("histogram(%v, 2): edges %v, want %v", c.x, got, c.edges)
		}
	}
}
