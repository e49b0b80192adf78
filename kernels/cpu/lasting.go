package cpu

import (
	"runtime"
	"unsafe"
)

// lastingBytes is from what size on memory is taken from the system, which bounds the number of such pieces in a process.
const lastingBytes = 256 << 10

// lastingMemory is packedMemory for what lives as long as a model: outside of Go's heap, which the garbage collector lets grow to twice
// what is in use. It lives as long as owner, and goes back to the system some time after all that its chunk was cut for became unreachable.
func lastingMemory[T Float, O any](owner *O, n int) []T {
	var zero T
	size := (n + prefetched) * int(unsafe.Sizeof(zero))
	if size < lastingBytes {
		return packedMemory[T](n)
	}
	bytes, chunk := chunkBytes(size)
	runtime.AddCleanup(owner, func(c *weightChunk) { runtime.KeepAlive(c) }, chunk)
	data := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), n+prefetched)
	data[n], data[n+prefetched-1] = 0, 0 // these exist then
	return data[:n]
}

// packedFor is memory for n packed elements of owner.
func packedFor[T Float, O any](owner *O, n int, lasting bool) []T {
	if lasting {
		return lastingMemory[T](owner, n)
	}
	return packedMemory[T](n)
}
