//go:build purego || !amd64

package cpu

func slideSetOf(int, int) *slideSet { return nil }
