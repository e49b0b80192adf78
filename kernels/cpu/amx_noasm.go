//go:build purego || !amd64

package cpu

func hasAMX() bool { return false }
