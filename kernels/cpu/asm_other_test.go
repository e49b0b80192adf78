//go:build purego || !(amd64 || arm64)

package cpu

func asmLevels() []string { return []string{"portable"} }

func setAsm(string) (restore func()) { return func() {} }
