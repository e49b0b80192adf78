package aten

import (
	"fmt"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// Copies between any two orders of dimensions move each element to its place, for all sizes of elements.
func TestCopyBetweenLayouts(t *testing.T) {
	sizes := []int64{3, 9, 17, 5}
	orders := [][]int{{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}}
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.Int16, tensor.Float32, tensor.Int64, tensor.Complex128} {
		for _, from := range orders {
			for _, to := range orders {
				src := tensor.NewStrided(dt, sizes, orderedStrides(sizes, from, 2))
				dst := tensor.NewStrided(dt, sizes, orderedStrides(sizes, to, 1))
				bytes := src.Storage().Bytes()
				for i := range bytes {
					bytes[i] = byte(i*7 + i/251)
				}
				Copy(nil, dst, src)
				size := int64(dt.Size())
				for i := range src.Numel() {
					s, d := offsetOf(src, i)*size, offsetOf(dst, i)*size
					if string(bytes[s:s+size]) != string(dst.Storage().Bytes()[d:d+size]) {
						t.Fatalf("%v from %v to %v: element %d differs", dt, from, to, i)
					}
				}
			}
		}
	}
}

// orderedStrides lays dimensions out in an order, outermost first, with gap times the room behind the innermost.
func orderedStrides(sizes []int64, order []int, gap int64) []int64 {
	st := make([]int64, len(sizes))
	next := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		st[order[i]] = next
		next *= sizes[order[i]]
		if i == len(order)-1 {
			next *= gap
		}
	}
	return st
}

// offsetOf is where element i in row-major order lies.
func offsetOf(t *tensor.Tensor, i int64) (off int64) {
	for d := t.Dim() - 1; d >= 0; d-- {
		off += i % t.Sizes()[d] * t.Strides()[d]
		i /= t.Sizes()[d]
	}
	return off
}

// Poolings and resizings of a channels-last tensor are those of the same tensor row by row.
func TestChannelsLastAsContiguous(t *testing.T) {
	x := tensor.New(tensor.Float32, 2, 6, 9, 8)
	data := tensor.Contiguous[float32](x)
	for i := range data {
		data[i] = float32((i*37)%101) - 50
	}
	last := tensor.NewStrided(tensor.Float32, x.Sizes(), orderedStrides(x.Sizes(), []int{0, 2, 3, 1}, 1))
	Copy(nil, last, x)
	for name, args := range map[string][]any{
		"group_norm":              {2, nil, nil, 1e-5, true},
		"max_pool2d":              {[]int64{3, 2}, []int64{2, 2}, []int64{1, 1}, []int64{1, 1}, true},
		"avg_pool2d":              {[]int64{3, 3}, []int64{2, 1}, []int64{1, 1}, false, false},
		"upsample_bilinear2d.vec": {[]int64{13, 20}, false, nil},
		"upsample_nearest2d.vec":  {[]int64{18, 16}, nil},
	} {
		var got [2]*tensor.Tensor
		for i, in := range []*tensor.Tensor{x, last} {
			out, err := Call(name, append([]any{FromTensor(in)}, args...)...)
			if err != nil {
				t.Fatal(name, err)
			}
			got[i] = out[0].(*Value).T
		}
		if fmt.Sprint(got[0].Sizes()) != fmt.Sprint(got[1].Sizes()) {
			t.Fatalf("%s: sizes %v and %v", name, got[0].Sizes(), got[1].Sizes())
		}
		for i := range got[0].Numel() {
			a, b := tensor.Data[float32](got[0])[offsetOf(got[0], i)], tensor.Data[float32](got[1])[offsetOf(got[1], i)]
			if d := a - b; d > 1e-5 || d < -1e-5 {
				t.Fatalf("%s: element %d is %v contiguous, %v with channels last", name, i, a, b)
			}
		}
	}
}
