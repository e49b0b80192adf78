package mmap

import "unsafe"

// largePage is the size of the pages that systems prefer for large memory.
const largePage = 2 << 20

// Anonymous is memory of the system's own, outside of Go's heap, so that the garbage collector does not count it: it lets the heap grow
// to a multiple of what is in use. Release gives it back.
type Anonymous struct {
	Data []byte // zeros; from largePage bytes on it begins on a large page
	all  []byte
}

// NewAnonymous maps n > 0 zero bytes; nil where the system has no such thing.
func NewAnonymous(n int) *Anonymous {
	size := n
	if n >= largePage {
		size += largePage
	}
	all, err := mapMemory(size)
	if err != nil {
		return nil
	}
	a := &Anonymous{all: all}
	skip := 0
	if n >= largePage {
		skip = int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) & (largePage - 1))
	}
	a.Data = all[skip : skip+n : skip+n]
	return a
}

// Release gives the memory back; Data must not be used afterwards.
func (a *Anonymous) Release() { _ = unmapMemory(a.all) }
