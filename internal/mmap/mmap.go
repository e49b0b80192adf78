// Package mmap maps files read-only into memory, or reads them where the system cannot map.
package mmap

import "os"

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
	return unmap(f.Data)
}
