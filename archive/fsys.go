package archive

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"sort"
	"time"
)

// FS is the archive as a file system: one file a record, without the root folder. Files can be sought and read at any place.
// Records whose names are no clean paths cannot be reached through it.
func (r *Reader) FS() fs.FS {
	f := &archiveFS{r: r, dirs: map[string][]fs.DirEntry{".": nil}}
	for _, e := range r.records {
		if fs.ValidPath(e.Name) {
			f.add(path.Dir(e.Name), info{path.Base(e.Name), e.Size, false})
		}
	}
	for _, list := range f.dirs {
		sort.Slice(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
	}
	return f
}

type archiveFS struct {
	r    *Reader
	dirs map[string][]fs.DirEntry
}

// add puts an entry into a folder; a folder that is new is added to its parent. A file of a folder's name stays hidden.
func (f *archiveFS) add(dir string, e info) {
	if _, known := f.dirs[dir]; !known {
		f.dirs[dir] = nil
		f.add(path.Dir(dir), info{path.Base(dir), 0, true})
	}
	f.dirs[dir] = append(f.dirs[dir], fs.FileInfoToDirEntry(e))
}

// Open implements fs.FS.
func (f *archiveFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if list, ok := f.dirs[name]; ok {
		return &openDir{info{path.Base(name), 0, true}, list}, nil
	}
	e, err := f.r.Record(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	b, err := f.r.Contents(e)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{bytes.NewReader(b), info{path.Base(name), e.Size, false}}, nil
}

// info describes a record or a folder.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openFile struct {
	*bytes.Reader
	info info
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info info
	rest []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		list := d.rest
		d.rest = nil
		return list, nil
	}
	if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	list := d.rest[:n]
	d.rest = d.rest[n:]
	return list, nil
}
