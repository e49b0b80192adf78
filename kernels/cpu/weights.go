package cpu

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/pt2go/pt2/internal/mmap"
)

// weightChunk is memory outside of Go's heap that packed weights are cut from: together they fill large pages. It goes back to
// the system some time after the last of them became unreachable.
type weightChunk struct{ left []byte }

var currentChunk struct {
	sync.Mutex
	*weightChunk
}

// chunkBytes gives n zero bytes that begin with a line of the cache. They are valid as long as what they were cut from is reachable.
func chunkBytes(n int) ([]int8, *weightChunk) {
	const size, line = 16 << 20, 64
	currentChunk.Lock()
	defer currentChunk.Unlock()
	c, need := currentChunk.weightChunk, roundUp(n, line)
	if c == nil || need > len(c.left) {
		c = newChunk(max(size, need))
		if need < size/2 {
			currentChunk.weightChunk = c
		}
	}
	b := c.left[:n:n]
	c.left = c.left[need:]
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), n), c
}

func newChunk(n int) *weightChunk {
	c := new(weightChunk)
	if m := mmap.NewAnonymous(n); m != nil {
		c.left = m.Data
		runtime.AddCleanup(c, (*mmap.Anonymous).Release, m)
	} else {
		b := make([]byte, n+64)
		c.left = b[-int(uintptr(unsafe.Pointer(&b[0])))&63:]
	}
	LargePages(c.left)
	return c
}
