//go:build purego || !amd64

package cpu

func asmAvailable() bool { return false }

func setAsm(bool) bool { return false }
