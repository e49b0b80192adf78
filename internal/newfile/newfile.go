// Package newfile writes files that appear at their place when they are complete. What stands there before stays as it is until then,
// and stays readable for whoever has it open or mapped.
package newfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// File is a file under way. It has to be ended by Commit or Discard.
type File struct {
	*os.File
	path string // where it will be, "" for what cannot be replaced, such as a device
}

// Create begins a file for path. A link at path goes on leading to the file.
func Create(path string) (*File, error) {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{File: f}, err
	}
	exists := err == nil
	target := path
	if exists {
		if target, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	dir, base := filepath.Split(target)
	for {
		f, err := os.OpenFile(dir+"."+base+"."+strconv.FormatUint(rand.Uint64(), 36), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			if e, ok := err.(*fs.PathError); ok {
				e.Path = path
			}
			return nil, err
		}
		n := &File{f, target}
		if exists {
			if err := f.Chmod(st.Mode().Perm()); err != nil {
				n.Discard()
				return nil, err
			}
		}
		return n, nil
	}
}

// Commit ends the file and puts it at its place. On an error nothing has changed there.
func (f *File) Commit() error {
	err := f.Close()
	if f.path == "" {
		return err
	}
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Discard ends the file and leaves nothing of it.
func (f *File) Discard() {
	f.Close()
	if f.path != "" {
		os.Remove(f.Name())
	}
}

// Write makes a whole file of b.
func Write(path string, b []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}
