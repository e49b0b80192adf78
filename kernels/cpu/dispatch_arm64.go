//go:build !purego

package cpu

// hasAVX2 chooses the assembly; tests turn it off to compare. Here it is NEON, which every arm64 has: the kernels with AVX2 in their names are
// those for narrow vectors, whatever the CPU calls them.
var hasAVX2 = true

const (
	hasAVX512 = false
	hasVNNI   = false
)
