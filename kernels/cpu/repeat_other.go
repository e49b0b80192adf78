//go:build purego || !amd64

package cpu

// RepeatF32 is each number of src as often as each says, which is at least 1; dst holds them all.
func RepeatF32(dst, src []float32, each int) { repeatGeneric(dst[:len(src)*each], src, each) }
