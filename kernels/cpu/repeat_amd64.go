//go:build !purego

package cpu

// RepeatF32 is each number of src as often as each says, which is at least 1; dst holds them all.
func RepeatF32(dst, src []float32, each int) {
	dst = dst[:len(src)*each]
	switch {
	case len(dst) == 0:
	case hasAVX512:
		repeatF32AVX512(&dst[0], &src[0], len(src), each)
	case hasAVX2:
		repeatF32AVX2(&dst[0], &src[0], len(src), each)
	default:
		repeatGeneric(dst, src, each)
	}
}
