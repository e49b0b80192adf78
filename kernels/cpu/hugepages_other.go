//go:build !linux

package cpu

func hugePages[T Float]([]T) {}

// LargePages asks for large pages behind memory that was just allocated, as far as whole ones lie in it. It is a hint.
func LargePages([]byte) {}
