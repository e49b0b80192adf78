//go:build !purego

package cpu

// hasAVX2 chooses the assembly, which needs nothing beyond what every arm64 has; tests turn it off to compare.
var hasAVX2 = true

const (
	hasAVX512 = false
	hasVNNI   = false
)
