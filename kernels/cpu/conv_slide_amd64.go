//go:build !purego

package cpu

// The kernels that slide along rows, by the filters' width and the step.
var slidesAVX512 = map[[2]int]*slideSet{
	{3, 1}: {
		[8]tileFunc{slide3s1x1v1F32AVX512, slide3s1x2v1F32AVX512, nil, slide3s1x4v1F32AVX512, nil, nil, slide3s1x7v1F32AVX512, slide3s1x8v1F32AVX512},
		[8]tileFunc{slide3s1x1v2F32AVX512, slide3s1x2v2F32AVX512, nil, slide3s1x4v2F32AVX512, nil, nil, slide3s1x7v2F32AVX512, slide3s1x8v2F32AVX512},
	},
	{3, 2}: {
		[8]tileFunc{slide3s2x1v1F32AVX512, slide3s2x2v1F32AVX512, nil, slide3s2x4v1F32AVX512, nil, nil, slide3s2x7v1F32AVX512, slide3s2x8v1F32AVX512},
		[8]tileFunc{slide3s2x1v2F32AVX512, slide3s2x2v2F32AVX512, nil, slide3s2x4v2F32AVX512, nil, nil, slide3s2x7v2F32AVX512, slide3s2x8v2F32AVX512},
	},
	{5, 1}: {
		[8]tileFunc{slide5s1x1v1F32AVX512, slide5s1x2v1F32AVX512, nil, slide5s1x4v1F32AVX512, nil, nil, slide5s1x7v1F32AVX512, slide5s1x8v1F32AVX512},
		[8]tileFunc{slide5s1x1v2F32AVX512, slide5s1x2v2F32AVX512, nil, slide5s1x4v2F32AVX512, nil, nil, slide5s1x7v2F32AVX512, slide5s1x8v2F32AVX512},
	},
	{5, 2}: {
		[8]tileFunc{slide5s2x1v1F32AVX512, slide5s2x2v1F32AVX512, nil, slide5s2x4v1F32AVX512, nil, nil, slide5s2x7v1F32AVX512, slide5s2x8v1F32AVX512},
		[8]tileFunc{slide5s2x1v2F32AVX512, slide5s2x2v2F32AVX512, nil, slide5s2x4v2F32AVX512, nil, nil, slide5s2x7v2F32AVX512, slide5s2x8v2F32AVX512},
	},
	{7, 1}: {
		[8]tileFunc{slide7s1x1v1F32AVX512, slide7s1x2v1F32AVX512, nil, slide7s1x4v1F32AVX512, nil, nil, slide7s1x7v1F32AVX512, slide7s1x8v1F32AVX512},
		[8]tileFunc{slide7s1x1v2F32AVX512, slide7s1x2v2F32AVX512, nil, slide7s1x4v2F32AVX512, nil, nil, slide7s1x7v2F32AVX512, slide7s1x8v2F32AVX512},
	},
	{7, 2}: {
		[8]tileFunc{slide7s2x1v1F32AVX512, slide7s2x2v1F32AVX512, nil, slide7s2x4v1F32AVX512, nil, nil, slide7s2x7v1F32AVX512, slide7s2x8v1F32AVX512},
		[8]tileFunc{slide7s2x1v2F32AVX512, slide7s2x2v2F32AVX512, nil, slide7s2x4v2F32AVX512, nil, nil, slide7s2x7v2F32AVX512, slide7s2x8v2F32AVX512},
	},
}

// slideSetOf are the kernels for a width and a step; nil if there are none.
func slideSetOf(width, stride int) *slideSet {
	if !hasAVX512 {
		return nil
	}
	return slidesAVX512[[2]int{width, stride}]
}

var stemsAVX512 = stemSet{
	{stem1v1F32AVX512, stem2v1F32AVX512, nil, stem4v1F32AVX512, nil, nil, stem7v1F32AVX512, nil, nil, nil, nil, nil, nil, stem14v1F32AVX512},
	{stem1v2F32AVX512, stem2v2F32AVX512, nil, stem4v2F32AVX512, nil, nil, stem7v2F32AVX512, nil, nil, nil, nil, nil, nil, stem14v2F32AVX512},
}

// stemSetOf are the kernels for few channels; nil if there are none.
func stemSetOf() *stemSet {
	if !hasAVX512 {
		return nil
	}
	return &stemsAVX512
}

// interleave3 puts elements of three rows side by side, and tells how many.
func interleave3(dst, a, b, c []float32) int {
	n := len(a) &^ 15
	if !hasAVX512 || n == 0 {
		return 0
	}
	interleave3F32AVX512(&dst[0], &a[0], &b[0], &c[0], n)
	return n
}
