// Package mmap maps files read-only into memory, or reads them where the system cannot map.
package mmap

import (
	"os"
	"sync"
	"unsafe"
)

// File is a read-only view of a whole file.
type File struct {
	Data   []byte
	mapped bool
}

// Open maps the file at path.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() == 0 || !st.Mode().IsRegular() || int64(int(st.Size())) != st.Size() {
		b, err := os.ReadFile(path)
		return &File{Data: b}, err
	}
	if b, err := mapFile(f, int(st.Size())); err == nil {
		live.Lock()
		live.maps = append(live.maps, b)
		live.Unlock()
		return &File{Data: b, mapped: true}, nil
	}
	b, err := os.ReadFile(path)
	return &File{Data: b}, err
}

// Close gives the mapping back; Data must not be used afterwards. It may be called twice.
func (f *File) Close() error {
	if !f.mapped {
		return nil
	}
	f.mapped = false
	live.Lock()
	for i, b := range live.maps {
		if unsafe.SliceData(b) == unsafe.SliceData(f.Data) {
			live.maps = append(live.maps[:i], live.maps[i+1:]...)
			break
		}
	}
	live.Unlock()
	return unmap(f.Data)
}

// live are the mappings that exist.
var live struct {
	sync.Mutex
	maps [][]byte
}

// Drop tells the system that b, part of a mapped file, is not going to be read soon: its pages stop counting as this process's memory
// and are read from the file again when they are. Other memory is left alone.
func Drop(b []byte) { advise(b, drop) }

// Want tells the system that b, part of a mapped file, is going to be read at once: its pages come by one call, not a fault for each few.
// Other memory is left alone.
func Want(b []byte) { advise(b, want) }

// advise calls do for the pages of a mapping that lie wholly in b.
func advise(b []byte, do func([]byte)) {
	if len(b) == 0 {
		return
	}
	live.Lock()
	defer live.Unlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, m := range live.maps {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
		if at < from || at+uintptr(len(b)) > from+uintptr(len(m)) {
			continue
		}
		// Only whole pages, counted from the mapping's begin, which is one.
		page := uintptr(os.Getpagesize())
		lo, hi := (at-from+page-1)/page*page, (at-from+uintptr(len(b)))/page*page
		if lo < hi {
			do(m[lo:hi])
		}
		return
	}
}
