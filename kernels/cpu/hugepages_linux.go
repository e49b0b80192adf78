package cpu

import (
	"syscall"
	"unsafe"
)

// hugePages asks for large pages behind memory that was just allocated: streams of weights then miss the page tables less often. It
// is a hint; where it is refused nothing changes.
func hugePages[T Float](data []T) {
	LargePages(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data))*unsafe.Sizeof(data[0])))
}

// LargePages asks for large pages behind memory that was just allocated, as far as whole ones lie in it. It is a hint.
func LargePages(bytes []byte) {
	const page = 2 << 20
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))) & (page - 1)
	if whole := (len(bytes) - skip) &^ (page - 1); whole > 0 {
		_ = syscall.Madvise(bytes[skip:skip+whole], syscall.MADV_HUGEPAGE)
	}
}
