//go:build purego || !(amd64 || arm64)

package cpu

const (
	hasAVX2   = false
	hasAVX512 = false
	hasVNNI   = false
)
