//go:build !purego

package cpu

func asmLevels() []string { return []string{"portable", "NEON"} }

// setAsm limits the kernels to a level until restore is called.
func setAsm(level string) (restore func()) {
	hasAVX2 = level != "portable"
	return func() { hasAVX2 = true }
}
