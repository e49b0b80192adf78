package cpu

import (
	"runtime"
	"unsafe"

	"github.com/pt2go/pt2/internal/mmap"
)

// lastingBytes is from what size on memory is taken from the system, which bounds the number of such pieces in a process.
const lastingBytes = 256 << 10

// lastingMemory is packedMemory for what lives as long as a model: outside of Go's heap, which the garbage collector lets grow to twice
// what is in use. It goes back to the system some time after owner became unreachable.
func lastingMemory[T Float, O any](owner *O, n int) []T {
	var zero T
	size := (n + prefetched) * int(unsafe.Sizeof(zero))
	if size < lastingBytes {
		return packedMemory[T](n)
	}
	m := mmap.NewAnonymous(size)
	if m == nil {
		return packedMemory[T](n)
	}
	runtime.AddCleanup(owner, (*mmap.Anonymous).Release, m)
	data := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(m.Data))), n+prefetched)
	touch(data)
	return data[:n]
}

// packedFor is memory for n packed elements of owner.
func packedFor[T Float, O any](owner *O, n int, lasting bool) []T {
	if lasting {
		return lastingMemory[T](owner, n)
	}
	return packedMemory[T](n)
}
