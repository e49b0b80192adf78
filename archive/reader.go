package archive

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"

	"github.com/pt2go/pt2/internal/mmap"
)

// Options bound what a reader spends on a file. The zero value has the defaults.
type Options struct {
	// MaxInflated bounds the size of one deflated record; default 1 GiB.
	MaxInflated int64
	// MaxInflatedTotal bounds the size of all deflated records that are read; default 4 GiB. Stored records do not count:
	// the file itself justifies them.
	MaxInflatedTotal int64
	// MaxRatio bounds how much larger than its stored form a deflated record may claim to be; default 1032, the most that
	// deflate can reach.
	MaxRatio int64
	// MaxRecords bounds the number of records; default 1<<20.
	MaxRecords int
	// CheckAll verifies every checksum while opening, instead of at the first touch of each record.
	CheckAll bool
	// SkipChecksums never verifies.
	SkipChecksums bool
	// NoRoot takes every name as it stands. By default the folder that all records lie in is no part of their names.
	NoRoot bool
}

func (o Options) withDefaults() Options {
	if o.MaxInflated == 0 {
		o.MaxInflated = 1 << 30
	}
	if o.MaxInflatedTotal == 0 {
		o.MaxInflatedTotal = 4 << 30
	}
	if o.MaxRatio == 0 {
		o.MaxRatio = 1032
	}
	if o.MaxRecords == 0 {
		o.MaxRecords = 1 << 20
	}
	return o
}

// Record is one entry of an archive.
type Record struct {
	Name   string // without the root folder
	Size   int64  // of the contents
	Offset int64  // of the stored data in the file

	raw    string
	local  int64 // offset of the local header
	packed int64 // size of the stored data
	crc    uint32
	method uint16

	once  sync.Once
	bytes []byte
	err   error
}

// Stored reports that the record is not compressed, so that its bytes are used where they lie.
func (r *Record) Stored() bool { return r.method == methodStored }

// Reader gives access to the records of an archive. It is safe for concurrent use; Close must come after all uses of the
// records' contents.
type Reader struct {
	data     []byte // the whole file, if it is in memory or mapped
	src      io.ReaderAt
	size     int64
	opts     Options
	root     string
	records  []*Record
	byName   map[string]*Record
	closer   io.Closer
	mapped   bool
	closed   atomic.Bool
	inflated atomic.Int64
}

// Open maps the file at path. Contents of records then point into the mapping and die with Close.
func Open(path string, opts Options) (*Reader, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, folderError(path)
	}
	f, err := mmap.Open(path)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	r, err := NewBytes(f.Data, opts)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer, r.mapped = f, true
	return r, nil
}

func folderError(path string) error {
	return &FormatError{"", 0, path + " is a folder: give the archive file itself; what was unpacked can be packed again with zip -0 -r", ErrNotPT2}
}

// OpenFS reads a file of a file system, such as an embed.FS. A file that can be read at any place is read record by record;
// others are read whole.
func OpenFS(fsys fs.FS, name string, opts Options) (*Reader, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		f.Close()
		return nil, folderError(name)
	}
	if at, ok := f.(io.ReaderAt); ok && err == nil && st.Mode().IsRegular() {
		r, err := NewReader(at, st.Size(), opts)
		if err != nil {
			f.Close()
			return nil, err
		}
		r.closer = f
		return r, nil
	}
	f.Close()
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return NewBytes(b, opts)
}

// NewBytes reads an archive in memory, without copying it.
func NewBytes(b []byte, opts Options) (*Reader, error) {
	return open(&Reader{data: b[:len(b):len(b)], src: bytes.NewReader(b), size: int64(len(b)), opts: opts.withDefaults()})
}

// NewReader reads through src; each record is read when it is first wanted, and kept.
func NewReader(src io.ReaderAt, size int64, opts Options) (*Reader, error) {
	if size < 0 {
		return nil, &FormatError{"", 0, fmt.Sprintf("negative size %d", size), ErrFormat}
	}
	return open(&Reader{src: src, size: size, opts: opts.withDefaults()})
}

// Close gives a mapping back; reading records afterwards is [ErrClosed]. It may be called twice.
func (r *Reader) Close() error {
	if r.closed.Swap(true) || r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Mapped reports that records point into a mapped file, which must not be written.
func (r *Reader) Mapped() bool { return r.mapped }

// Root is the root folder with its slash, "" if there is none.
func (r *Reader) Root() string { return r.root }

// Records lists all records in the order of the directory.
func (r *Reader) Records() []*Record { return r.records }

// Names lists the records' names without the root folder, in the order of the directory: PT2ArchiveReader.get_file_names.
func (r *Reader) Names() []string {
	out := make([]string, len(r.records))
	for i, e := range r.records {
		out[i] = e.Name
	}
	return out
}

// Has reports a record.
func (r *Reader) Has(name string) bool { return r.byName[name] != nil }

// Record finds a record by name. A missing one is [ErrNotFound].
func (r *Reader) Record(name string) (*Record, error) {
	if e := r.byName[name]; e != nil {
		return e, nil
	}
	return nil, &FormatError{Record: name, Msg: "the archive has no such record", Kind: ErrNotFound}
}

// ReadString is ReadBytes as text, which must be UTF-8.
func (r *Reader) ReadString(name string) (string, error) {
	b, err := r.ReadBytes(name)
	if err == nil && !utf8.Valid(b) {
		return "", &FormatError{name, r.byName[name].Offset, "the text is not UTF-8", ErrFormat}
	}
	return string(b), err
}

// ReadBytes gives a record's contents. They must not be changed: they may lie in the mapped file.
func (r *Reader) ReadBytes(name string) ([]byte, error) {
	e, err := r.Record(name)
	if err != nil {
		return nil, err
	}
	return r.Contents(e)
}

// CountPrefix counts the records whose names begin with prefix.
func (r *Reader) CountPrefix(prefix string) int {
	n := 0
	for _, e := range r.records {
		if strings.HasPrefix(e.Name, prefix) {
			n++
		}
	}
	return n
}

// Contents gives a record's contents, as ReadBytes does.
func (r *Reader) Contents(e *Record) ([]byte, error) {
	if r.closed.Load() {
		return nil, fmt.Errorf("archive: read of record %q: %w", e.raw, ErrClosed)
	}
	e.once.Do(func() { e.bytes, e.err = r.load(e) })
	return e.bytes, e.err
}

// droppedBytes is from what size on a mapped record's pages are given back when its checksum is known.
const droppedBytes = 256 << 10

func (r *Reader) load(e *Record) ([]byte, error) {
	raw, err := r.slice(e.Offset, e.packed)
	if err != nil {
		return nil, &FormatError{e.raw, e.Offset, err.Error(), ErrFormat}
	}
	if e.method == methodDeflated {
		if raw, err = r.inflate(e, raw); err != nil {
			return nil, err
		}
	}
	if !r.opts.SkipChecksums {
		if r.mapped && len(raw) >= droppedBytes {
			mmap.Want(raw)
		}
		if got := crc32.ChecksumIEEE(raw); got != e.crc {
			return nil, &FormatError{e.raw, e.Offset, fmt.Sprintf("checksum %08x, the directory says %08x: the file is damaged", got, e.crc), ErrChecksum}
		}
		if r.mapped && len(raw) >= droppedBytes {
			mmap.Drop(raw) // until somebody wants it: of a table, few pages may be
		}
	}
	return raw, nil
}

// inflate grows its result as data arrives, so that a false size costs no more memory than the data gives.
func (r *Reader) inflate(e *Record, raw []byte) ([]byte, error) {
	if total := r.inflated.Add(e.Size); total > r.opts.MaxInflatedTotal || total < 0 {
		return nil, &FormatError{e.raw, e.Offset, fmt.Sprintf("all deflated records together have more than %d bytes; raise Options.MaxInflatedTotal if the file is trusted", r.opts.MaxInflatedTotal), ErrLimit}
	}
	fr := flate.NewReader(bytes.NewReader(raw))
	defer fr.Close()
	b := make([]byte, 0, min(e.Size, 1<<20))
	for int64(len(b)) < e.Size {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(e.Size, 2*int64(cap(b)))), b...)
		}
		n, err := io.ReadFull(fr, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			return nil, &FormatError{e.raw, e.Offset, fmt.Sprintf("deflated data gives %d bytes, the directory says %d (%v)", len(b), e.Size, err), ErrFormat}
		}
	}
	var one [1]byte
	if n, err := io.ReadFull(fr, one[:]); n != 0 || err != io.EOF {
		return nil, &FormatError{e.raw, e.Offset, fmt.Sprintf("deflated data goes on after the %d bytes of the directory", e.Size), ErrFormat}
	}
	return b, nil
}

// slice gives n bytes at off, without a copy if the file is in memory.
func (r *Reader) slice(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > r.size || n > r.size-off || int64(int(n)) != n {
		return nil, fmt.Errorf("%d bytes at %d leave the file of %d bytes", n, off, r.size)
	}
	if r.data != nil || r.size == 0 {
		return r.data[off : off+n : off+n], nil
	}
	b := make([]byte, n)
	if got, err := r.src.ReadAt(b, off); int64(got) < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("reading %d bytes at %d: %w", n, off, err)
	}
	return b, nil
}
