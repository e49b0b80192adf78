//go:build purego || !amd64

package cpu

func slideSetOf(int, int) *slideSet { return nil }

func stemSetOf() *stemSet { return nil }

func interleave3(dst, a, b, c []float32) int { return 0 }
