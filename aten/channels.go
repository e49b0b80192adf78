package aten

import "github.com/pt2go/pt2/tensor"

// channelsInside reports that t [N, C, spatial...] of float32 lies in memory as [N, spatial..., C] without gaps.
func channelsInside(t *tensor.Tensor) bool {
	n := t.Dim()
	if n < 3 || t.DType() != tensor.Float32 || t.Sizes()[1] < 4 {
		return false
	}
	size, st := t.Sizes(), t.Strides()
	next := size[1]
	if st[1] != 1 {
		return false
	}
	for d := n - 1; d >= 2; d-- {
		if size[d] != 1 && st[d] != next {
			return false
		}
		next *= size[d]
	}
	return size[0] == 1 || st[0] == next
}
