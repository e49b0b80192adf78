//go:build !linux

package cpu

func hugePages[T Float]([]T) {}
