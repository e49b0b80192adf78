package archive

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pt2go/pt2/internal/newfile"
)

// Align is the alignment in bytes of each record's data in the file.
const Align = 64

// Writer writes an archive as PyTorch's own writer does: stored records in one root folder, each beginning at a multiple of
// [Align], with data descriptors. Nothing but names and checksums is kept in memory. It is not safe for concurrent use.
type Writer struct {
	w       *bufio.Writer
	file    *newfile.File
	root    string
	pos     int64
	entries []entryInfo
	names   map[string]bool
	digest  [32]byte
	err     error
	closed  bool
	plain   bool        // no serialization id
	trailer [][2]string // records that Close adds if they are not there yet
}

type entryInfo struct {
	name   string
	crc    uint32
	size   int64
	offset int64
	flags  uint16
}

// Create makes a PT2 archive at path; its root folder is the file's name without the last suffix. The archive is there once Close has
// succeeded; a file that was there before stays until then, so that it may be what is read meanwhile.
func Create(path string) (*Writer, error) {
	f, err := newfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	base := filepath.Base(path)
	w := NewWriter(f, strings.TrimSuffix(base, filepath.Ext(base)))
	w.file = f
	return w, nil
}

// NewWriter makes a PT2 archive on w with the given root folder; "" is "archive", PyTorch's choice for buffers.
func NewWriter(w io.Writer, root string) *Writer {
	if root == "" {
		root = "archive"
	}
	return &Writer{w: bufio.NewWriterSize(w, 1<<16), root: root + "/", names: map[string]bool{},
		trailer: [][2]string{{FormatPath, FormatValue}, {VersionPath, VersionValue}, {".data/version", "6\n"}, {"byteorder", "little"}}}
}

// NewTorchWriter makes the zip of a torch.save file on w: root folder "archive", container version 3.
func NewTorchWriter(w io.Writer) *Writer {
	t := NewWriter(w, "archive")
	t.trailer = [][2]string{{"version", "3\n"}}
	return t
}

// NewPlainWriter makes an ordinary zip on w: records at the top, none added by Close.
func NewPlainWriter(w io.Writer) *Writer {
	p := NewWriter(w, "")
	p.root, p.trailer, p.plain = "", nil, true
	return p
}

// Has reports a record that was written: PT2ArchiveWriter.has_record.
func (w *Writer) Has(name string) bool { return w.names[name] }

// CountPrefix counts the records whose names begin with prefix, which need not be a whole folder name.
func (w *Writer) CountPrefix(prefix string) int {
	n := 0
	for name := range w.names {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// WriteString adds a record of text.
func (w *Writer) WriteString(name, text string) error { return w.WriteBytes(name, []byte(text)) }

// WriteBytes adds a record. A name that was written already is [ErrExist]; one that is absolute or holds ".." is a
// [*NameError]; after Close every write is [ErrClosed]. None of these spoils the archive.
func (w *Writer) WriteBytes(name string, b []byte) error {
	e, err := w.begin(name, int64(len(b)))
	if err != nil {
		return err
	}
	e.crc = crc32.ChecksumIEEE(b)
	w.write(b)
	return w.finish(e)
}

// WriteFrom adds a record of exactly size bytes that it reads from src. If src fails or has another length, the archive
// is spoilt: every later call gives the error.
func (w *Writer) WriteFrom(name string, src io.Reader, size int64) error {
	if size < 0 {
		return &FormatError{name, w.pos, fmt.Sprintf("negative size %d", size), ErrFormat}
	}
	e, err := w.begin(name, size)
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(sinkFunc(w.write), sum), io.LimitReader(src, size))
	if err == nil && n == size {
		var one [1]byte
		if extra, _ := io.ReadFull(src, one[:]); extra > 0 {
			n++
		}
	}
	if w.err == nil && (err != nil || n != size) {
		if err == nil {
			err = errors.New("the source has another length than was said")
		}
		w.err = &FormatError{name, e.offset, fmt.Sprintf("writing %d bytes: %v", size, err), ErrFormat}
	}
	e.crc = sum.Sum32()
	return w.finish(e)
}

// sinkFunc is an io.Writer whose errors are kept elsewhere.
type sinkFunc func([]byte)

func (f sinkFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// WriteFile adds the regular file at path as a record, without reading it whole.
func (w *Writer) WriteFile(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("archive: %s is no regular file: %w", path, fs.ErrInvalid)
	}
	return w.WriteFrom(name, f, st.Size())
}

// WriteFolder adds all regular files below dir, under prefix and their path relative to dir. As in PyTorch, files and folders
// whose names begin with a dot are left out.
func (w *Writer) WriteFolder(prefix, dir string) error {
	if st, err := os.Stat(dir); err != nil {
		return fmt.Errorf("archive: %w", err)
	} else if !st.IsDir() {
		return fmt.Errorf("archive: %s is no folder: %w", dir, fs.ErrInvalid)
	}
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("archive: %w", err)
		case file == dir:
			return nil
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() {
			return nil // a folder, or a link that leads nowhere
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		return w.WriteFile(path.Join(prefix, filepath.ToSlash(rel)), file)
	})
}

// begin checks the name of a record and writes its local header.
func (w *Writer) begin(name string, size int64) (*entryInfo, error) {
	switch {
	case w.closed:
		return nil, fmt.Errorf("archive: write of record %q: %w", name, ErrClosed)
	case w.err != nil:
		return nil, w.err
	case w.names[name]:
		return nil, &FormatError{name, w.pos, "a record of this name was written already", ErrExist}
	}
	reason := badName(name)
	switch {
	case reason == "" && strings.HasSuffix(name, "/"):
		reason = "the name is a folder's"
	case reason == "" && len(w.root)+len(name) > 0xffff:
		reason = "the name is longer than a zip can hold"
	}
	if reason != "" {
		return nil, &NameError{name, reason}
	}
	w.names[name] = true
	e := &entryInfo{name: w.root + name, size: size, offset: w.pos, flags: 0x808}
	if size == 0 {
		e.flags = 0x800
	}
	w.local(e)
	return e, nil
}

// finish writes what follows a record's data.
func (w *Writer) finish(e *entryInfo) error {
	w.descriptor(e)
	w.entries = append(w.entries, *e)
	w.digest = sha256.Sum256(le.AppendUint32(append(w.digest[:], e.name...), e.crc))
	return w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.pos += int64(n)
	if err != nil {
		w.err = fmt.Errorf("archive: %w", err)
	}
}

// local writes a local header, padded so that the data is aligned. As PyTorch does, it leaves checksum and sizes to the
// descriptor; a size of 4 GiB or more stands in a zip64 field, which makes the descriptor a wide one.
func (w *Writer) local(e *entryInfo) {
	h := make([]byte, 30, 30+len(e.name)+Align+24)
	le.PutUint32(h, sigLocal)
	le.PutUint16(h[6:], e.flags)
	var extra []byte
	if e.size >= 0xffffffff {
		le.PutUint32(h[18:], 0xffffffff)
		le.PutUint32(h[22:], 0xffffffff)
		extra = le.AppendUint16(extra, 1)
		extra = le.AppendUint16(extra, 16)
		extra = le.AppendUint64(extra, uint64(e.size))
		extra = le.AppendUint64(extra, uint64(e.size))
	}
	start := w.pos + 30 + int64(len(e.name)) + int64(len(extra)) + 4
	pad := int((Align - start%Align) % Align)
	extra = append(extra, 'F', 'B', byte(pad), byte(pad>>8))
	for range pad {
		extra = append(extra, 'Z')
	}
	le.PutUint16(h[26:], uint16(len(e.name)))
	le.PutUint16(h[28:], uint16(len(extra)))
	w.write(append(append(h, e.name...), extra...))
}

func (w *Writer) descriptor(e *entryInfo) {
	if e.flags&8 == 0 {
		return
	}
	d := le.AppendUint32([]byte("PK\x07\x08"), e.crc)
	if e.size >= 0xffffffff {
		d = le.AppendUint64(d, uint64(e.size))
		d = le.AppendUint64(d, uint64(e.size))
	} else {
		d = le.AppendUint32(d, uint32(e.size))
		d = le.AppendUint32(d, uint32(e.size))
	}
	w.write(d)
}

// Close writes the bookkeeping records and the directory, without which the file is not valid. A second call does nothing
// and gives the same result.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	for _, t := range w.trailer {
		if !w.names[t[0]] {
			w.WriteString(t[0], t[1])
		}
	}
	if !w.plain && !w.names[idPath] {
		id := new(big.Int).SetBytes(w.digest[:16]).String()
		w.WriteString(idPath, strings.Repeat("0", 40-len(id))+id)
	}
	w.closed = true
	w.directory()
	if w.err == nil {
		w.err = w.w.Flush()
	}
	switch {
	case w.file == nil:
	case w.err != nil:
		w.file.Discard()
	default:
		if err := w.file.Commit(); err != nil {
			w.err = fmt.Errorf("archive: %w", err)
		}
	}
	return w.err
}

// Abort ends the writing without an archive: nothing is left of a file of [Create], whoever gets the bytes of others gets no directory.
// After Close it does nothing.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	w.closed, w.err = true, fmt.Errorf("archive: the writing was given up: %w", ErrClosed)
	if w.file != nil {
		w.file.Discard()
	}
}

// idPath holds 40 digits that tell one archive's contents from another's; readers do not check them.
const idPath = ".data/serialization_id"

func (w *Writer) directory() {
	start := w.pos
	for i := range w.entries {
		e := &w.entries[i]
		var z []byte
		clip := func(v int64) uint32 {
			if v >= 0xffffffff {
				z = le.AppendUint64(z, uint64(v))
				return 0xffffffff
			}
			return uint32(v)
		}
		h := make([]byte, 46)
		le.PutUint32(h, sigCentral)
		le.PutUint16(h[8:], e.flags)
		le.PutUint32(h[16:], e.crc)
		le.PutUint32(h[24:], clip(e.size))
		le.PutUint32(h[20:], clip(e.size))
		le.PutUint32(h[42:], clip(e.offset))
		le.PutUint16(h[28:], uint16(len(e.name)))
		if len(z) > 0 {
			z = append(le.AppendUint16(le.AppendUint16(nil, 1), uint16(len(z))), z...)
			le.PutUint16(h[30:], uint16(len(z)))
		}
		w.write(append(append(h, e.name...), z...))
	}
	w.end(start, w.pos-start)
}

// end writes the end records. PyTorch writes the zip64 ones always; an ordinary zip has them only where it must.
func (w *Writer) end(start, size int64) {
	n := len(w.entries)
	if !w.plain || n >= 0xffff || start >= 0xffffffff || size >= 0xffffffff {
		at := w.pos
		z := make([]byte, 56)
		le.PutUint32(z, sigEnd64)
		le.PutUint64(z[4:], 44)
		le.PutUint16(z[12:], 0x031e)
		le.PutUint16(z[14:], 45)
		le.PutUint64(z[24:], uint64(n))
		le.PutUint64(z[32:], uint64(n))
		le.PutUint64(z[40:], uint64(size))
		le.PutUint64(z[48:], uint64(start))
		l := make([]byte, 20)
		le.PutUint32(l, sigLoc64)
		le.PutUint64(l[8:], uint64(at))
		le.PutUint32(l[16:], 1)
		w.write(append(z, l...))
	}
	e := make([]byte, 22)
	le.PutUint32(e, sigEnd)
	le.PutUint16(e[8:], uint16(min(n, 0xffff)))
	le.PutUint16(e[10:], uint16(min(n, 0xffff)))
	le.PutUint32(e[12:], uint32(min(size, 0xffffffff)))
	le.PutUint32(e[16:], uint32(min(start, 0xffffffff)))
	w.write(e)
}
