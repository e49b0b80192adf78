//go:build !purego

package cpu

// asmLevels are the instruction sets that this CPU lets tests go through.
func asmLevels() []string {
	levels := []string{"portable"}
	if hasAVX2 {
		levels = append(levels, "AVX2")
	}
	if hasAVX512 {
		levels = append(levels, "AVX512")
	}
	return levels
}

// setAsm limits the kernels to a level until restore is called.
func setAsm(level string) (restore func()) {
	avx2, avx512, vnni := hasAVX2, hasAVX512, hasVNNI
	hasAVX2, hasAVX512, hasVNNI = avx2 && level != "portable", avx512 && level == "AVX512", vnni && level == "AVX512"
	return func() { hasAVX2, hasAVX512, hasVNNI = avx2, avx512, vnni }
}
