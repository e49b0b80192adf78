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
	if hasAMX() {
		levels = append(levels, "AMX")
	}
	return levels
}

// setAsm limits the kernels to a level until restore is called.
func setAsm(level string) (restore func()) {
	avx2, avx512, vnni, amx := hasAVX2, hasAVX512, hasVNNI, hasAMX
	wide := level == "AVX512" || level == "AMX"
	hasAVX2, hasAVX512, hasVNNI = avx2 && level != "portable", avx512 && wide, vnni && wide
	hasAMX = func() bool { return level == "AMX" && amx() }
	return func() { hasAVX2, hasAVX512, hasVNNI, hasAMX = avx2, avx512, vnni, amx }
}
