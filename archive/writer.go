package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
)

// Align is the alignment in bytes of each record's data in the file.
const Align = 64

// Writer writes an archive as PyTorch's own writer does: stored records in one root folder, each beginning at a multiple of
// [Align], with data descriptors. It is not safe for concurrent use.
type Writer struct {
	w       *bufio.Writer
	file    io.Closer
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

// Create makes a PT2 archive at path; its root folder is the file's name without the last suffix.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	base := filepath.Base(path)
	w := NewWriter(f, strings.TrimSuffix(base, filepath.Ext(base)))
	w.file = f
	return w, nil
}

// NewWriter makes a PT2 archive on w with the given root folder ("archive" is PyTorch's choice for buffers).
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

// Has reports a record that was written.
func (w *Writer) Has(name string) bool { return w.names[name] }

// CountPrefix counts the records whose names begin with prefix.
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

// WriteBytes adds a record.
func (w *Writer) WriteBytes(name string, b []byte) error {
	switch {
	case w.closed:
		return fmt.Errorf("archive: write of %q: %w", name, ErrClosed)
	case w.err != nil:
		return w.err
	case w.names[name]:
		return &FormatError{name, w.pos, "a record of this name was written already", ErrFormat}
	}
	if err := checkName(name); err != nil {
		return &FormatError{name, w.pos, err.Error(), ErrFormat}
	}
	w.names[name] = true
	e := entryInfo{name: w.root + name, crc: crc32.ChecksumIEEE(b), size: int64(len(b)), offset: w.pos, flags: 0x808}
	if len(b) == 0 {
		e.flags = 0x800
	}
	w.local(&e)
	w.write(b)
	w.descriptor(&e)
	w.entries = append(w.entries, e)
	w.digest = sha256.Sum256(append(append(w.digest[:], name...), binary.LittleEndian.AppendUint32(nil, e.crc)...))
	return w.err
}

// WriteFile adds the file at path as a record.
func (w *Writer) WriteFile(name, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return w.WriteBytes(name, b)
}

// WriteFolder adds all files below dir, under prefix and their path relative to dir.
func (w *Writer) WriteFolder(prefix, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return w.WriteFile(strings.TrimSuffix(prefix, "/")+"/"+filepath.ToSlash(rel), path)
	})
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.pos += int64(n)
	w.err = err
}

// local writes a local header, padded so that the data is aligned.
func (w *Writer) local(e *entryInfo) {
	h := make([]byte, 30, 30+len(e.name)+Align+24)
	le := binary.LittleEndian
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
	d := binary.LittleEndian.AppendUint32([]byte("PK\x07\x08"), e.crc)
	if e.size >= 0xffffffff {
		d = binary.LittleEndian.AppendUint64(d, uint64(e.size))
		d = binary.LittleEndian.AppendUint64(d, uint64(e.size))
	} else {
		d = binary.LittleEndian.AppendUint32(d, uint32(e.size))
		d = binary.LittleEndian.AppendUint32(d, uint32(e.size))
	}
	w.write(d)
}

// Close writes the bookkeeping records and the directory. It may be called twice; the file is not valid without it.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	for _, t := range w.trailer {
		if !w.names[t[0]] {
			w.WriteString(t[0], t[1])
		}
	}
	if !w.plain {
		id := new(big.Int).SetBytes(w.digest[:16]).String()
		w.WriteString(".data/serialization_id", strings.Repeat("0", 40-len(id))+id)
	}
	w.closed = true
	w.directory()
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.file != nil {
		if err := w.file.Close(); w.err == nil {
			w.err = err
		}
	}
	return w.err
}

func (w *Writer) directory() {
	start := w.pos
	le := binary.LittleEndian
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

func (w *Writer) end(start, size int64) {
	le := binary.LittleEndian
	n := len(w.entries)
	if n >= 0xffff || start >= 0xffffffff || size >= 0xffffffff {
		at := w.pos
		z := make([]byte, 56)
		le.PutUint32(z, sigEnd64)
		le.PutUint64(z[4:], 44)
		le.PutUint16(z[12:], 45)
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

// NewPlainWriter makes an ordinary zip on w: records at the top, none added by Close.
func NewPlainWriter(w io.Writer) *Writer {
	p := NewWriter(w, "x")
	p.root, p.trailer, p.plain = "", nil, true
	return p
}
