package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"

	"github.com/pt2go/pt2/internal/mmap"
)

// Options bound what a reader spends on a file. The zero value has the defaults.
type Options struct {
	// MaxInflated bounds the size of one deflated record; default 1 GiB.
	MaxInflated int64
	// MaxRatio bounds how much larger than its stored form a deflated record may claim to be; default 1032, the most that
	// deflate can reach.
	MaxRatio int64
	// MaxRecords bounds the number of records; default 1<<20.
	MaxRecords int
	// CheckAll verifies every checksum while opening, instead of at the first touch of each record.
	CheckAll bool
	// SkipChecksums never verifies.
	SkipChecksums bool
}

func (o Options) withDefaults() Options {
	if o.MaxInflated == 0 {
		o.MaxInflated = 1 << 30
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
	packed int64
	crc    uint32
	method uint16

	once  sync.Once
	bytes []byte
	err   error
}

// Stored reports that the record is not compressed, so that its bytes are used where they lie.
func (r *Record) Stored() bool { return r.method == 0 }

// Reader gives access to the records of an archive. It is safe for concurrent use until Close.
type Reader struct {
	data    []byte // the whole file, if it is in memory or mapped
	src     io.ReaderAt
	size    int64
	opts    Options
	root    string
	records []*Record
	byName  map[string]*Record
	closer  io.Closer
	mapped  bool
}

// Open maps the file at path. Contents of records then point into the mapping and die with Close.
func Open(path string, opts Options) (*Reader, error) {
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

// OpenFS reads a file of a file system, such as an embed.FS.
func OpenFS(fsys fs.FS, name string, opts Options) (*Reader, error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return NewBytes(b, opts)
}

// NewBytes reads an archive in memory, without copying it.
func NewBytes(b []byte, opts Options) (*Reader, error) {
	r := &Reader{data: b, src: bytes.NewReader(b), size: int64(len(b)), opts: opts.withDefaults()}
	return r, r.open()
}

// NewReader reads through src; each record is read when it is first wanted.
func NewReader(src io.ReaderAt, size int64, opts Options) (*Reader, error) {
	r := &Reader{src: src, size: size, opts: opts.withDefaults()}
	return r, r.open()
}

// Close gives a mapping back. It may be called twice.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	c := r.closer
	r.closer = nil
	return c.Close()
}

// Mapped reports that records point into a mapped file, which must not be written.
func (r *Reader) Mapped() bool { return r.mapped }

// Root is the root folder with its slash, "" if there is none.
func (r *Reader) Root() string { return r.root }

// Records lists all records in the order of the directory.
func (r *Reader) Records() []*Record { return r.records }

// Names lists the records' names without the root folder.
func (r *Reader) Names() []string {
	out := make([]string, len(r.records))
	for i, e := range r.records {
		out[i] = e.Name
	}
	return out
}

// Has reports a record.
func (r *Reader) Has(name string) bool { return r.byName[name] != nil }

// Record finds a record by name.
func (r *Reader) Record(name string) (*Record, error) {
	if e := r.byName[name]; e != nil {
		return e, nil
	}
	return nil, &FormatError{Record: name, Msg: "the archive has no such record", Kind: ErrNotFound}
}

// ReadString is ReadBytes as text.
func (r *Reader) ReadString(name string) (string, error) {
	b, err := r.ReadBytes(name)
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
	e.once.Do(func() { e.bytes, e.err = r.load(e) })
	return e.bytes, e.err
}

func (r *Reader) load(e *Record) ([]byte, error) {
	raw, err := r.slice(e.Offset, e.packed)
	if err != nil {
		return nil, &FormatError{e.raw, e.Offset, err.Error(), ErrFormat}
	}
	if e.method == 8 {
		if raw, err = r.inflate(e, raw); err != nil {
			return nil, err
		}
	}
	if !r.opts.SkipChecksums {
		if got := crc32.ChecksumIEEE(raw); got != e.crc {
			return nil, &FormatError{e.raw, e.Offset, fmt.Sprintf("checksum %08x, the directory says %08x: the file is damaged", got, e.crc), ErrChecksum}
		}
	}
	return raw, nil
}

func (r *Reader) inflate(e *Record, raw []byte) ([]byte, error) {
	fr := flate.NewReader(bytes.NewReader(raw))
	defer fr.Close()
	var b bytes.Buffer
	b.Grow(int(min(e.Size, 1<<20)))
	n, err := io.Copy(&b, io.LimitReader(fr, e.Size+1))
	if err != nil || n != e.Size {
		return nil, &FormatError{e.raw, e.Offset, fmt.Sprintf("deflated data gives %d bytes, the directory says %d (%v)", n, e.Size, err), ErrFormat}
	}
	return b.Bytes(), nil
}

// slice gives n bytes at off, without a copy if the file is in memory.
func (r *Reader) slice(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > r.size || n > r.size-off {
		return nil, fmt.Errorf("%d bytes at %d leave the file of %d bytes", n, off, r.size)
	}
	if r.data != nil || r.size == 0 {
		return r.data[off : off+n : off+n], nil
	}
	b := make([]byte, n)
	if _, err := r.src.ReadAt(b, off); err != nil && !(err == io.EOF && n == 0) {
		return nil, err
	}
	return b, nil
}

const (
	sigLocal   = 0x04034b50
	sigCentral = 0x02014b50
	sigEnd     = 0x06054b50
	sigEnd64   = 0x06064b50
	sigLoc64   = 0x07064b50
)

func (r *Reader) open() error {
	dir, count, off, err := r.directory()
	if err != nil {
		return err
	}
	if err := r.entries(dir, count, off); err != nil {
		return err
	}
	if err := r.checkLayout(off); err != nil {
		return err
	}
	r.findRoot()
	r.byName = make(map[string]*Record, len(r.records))
	for _, e := range r.records {
		if r.byName[e.Name] != nil {
			return &FormatError{e.raw, e.Offset, "the name occurs twice", ErrFormat}
		}
		r.byName[e.Name] = e
	}
	if r.opts.CheckAll {
		for _, e := range r.records {
			if _, err := r.Contents(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// directory finds the central directory: its bytes, number of entries and offset.
func (r *Reader) directory() (dir []byte, count, off int64, err error) {
	bad := func(at int64, kind error, format string, args ...any) ([]byte, int64, int64, error) {
		return nil, 0, 0, &FormatError{"", at, fmt.Sprintf(format, args...), kind}
	}
	tailLen := min(r.size, 22+65535)
	tail, err := r.slice(r.size-tailLen, tailLen)
	if err != nil {
		return bad(0, ErrFormat, "%v", err)
	}
	end := -1
	for i := len(tail) - 22; i >= 0; i-- {
		if binary.LittleEndian.Uint32(tail[i:]) == sigEnd && i+22+int(binary.LittleEndian.Uint16(tail[i+20:])) <= len(tail) {
			end = i
			break
		}
	}
	if end < 0 {
		return bad(r.size, ErrNotPT2, "no zip directory at the end: %s", Sniff(head(r)).Advice())
	}
	e := tail[end:]
	endOff := r.size - tailLen + int64(end)
	count = int64(binary.LittleEndian.Uint16(e[10:]))
	size := int64(binary.LittleEndian.Uint32(e[12:]))
	off = int64(binary.LittleEndian.Uint32(e[16:]))
	if count == 0xffff || size == 0xffffffff || off == 0xffffffff {
		if l, err := r.slice(endOff-20, 20); err == nil && binary.LittleEndian.Uint32(l) == sigLoc64 {
			at := int64(binary.LittleEndian.Uint64(l[8:]))
			z, err := r.slice(at, 56)
			if err != nil || binary.LittleEndian.Uint32(z) != sigEnd64 {
				return bad(at, ErrFormat, "the zip64 end record is not where the locator says")
			}
			count = int64(binary.LittleEndian.Uint64(z[32:]))
			size = int64(binary.LittleEndian.Uint64(z[40:]))
			off = int64(binary.LittleEndian.Uint64(z[48:]))
			endOff = at
		}
	}
	if off < 0 || size < 0 || off > endOff || size > endOff-off {
		return bad(endOff, ErrFormat, "the directory (%d bytes at %d) leaves the file", size, off)
	}
	if count < 0 || count > int64(r.opts.MaxRecords) || count > size/46 {
		return bad(endOff, ErrFormat, "%d records in a directory of %d bytes", count, size)
	}
	if dir, err = r.slice(off, size); err != nil {
		return bad(off, ErrFormat, "%v", err)
	}
	return dir, count, off, nil
}

func head(r *Reader) []byte {
	b, _ := r.slice(0, min(r.size, 4096))
	return b
}

func (r *Reader) entries(dir []byte, count, off int64) error {
	pos := 0
	for range count {
		e, n, err := r.entry(dir[pos:], off+int64(pos))
		if err != nil {
			return err
		}
		pos += n
		if e != nil {
			r.records = append(r.records, e)
		}
	}
	return nil
}

func (r *Reader) entry(b []byte, at int64) (*Record, int, error) {
	fail := func(name, format string, args ...any) (*Record, int, error) {
		return nil, 0, &FormatError{name, at, fmt.Sprintf(format, args...), ErrFormat}
	}
	if len(b) < 46 || binary.LittleEndian.Uint32(b) != sigCentral {
		return fail("", "the directory ends early")
	}
	nameLen, extraLen, commentLen := int(binary.LittleEndian.Uint16(b[28:])), int(binary.LittleEndian.Uint16(b[30:])), int(binary.LittleEndian.Uint16(b[32:]))
	n := 46 + nameLen + extraLen + commentLen
	if len(b) < n {
		return fail("", "the directory ends inside an entry")
	}
	e := &Record{
		raw:    string(b[46 : 46+nameLen]),
		method: binary.LittleEndian.Uint16(b[10:]),
		crc:    binary.LittleEndian.Uint32(b[16:]),
		packed: int64(binary.LittleEndian.Uint32(b[20:])),
		Size:   int64(binary.LittleEndian.Uint32(b[24:])),
	}
	local := int64(binary.LittleEndian.Uint32(b[42:]))
	zip64(b[46+nameLen:46+nameLen+extraLen], &e.Size, &e.packed, &local)
	if err := checkName(e.raw); err != nil {
		return fail(e.raw, "%v", err)
	}
	if strings.HasSuffix(e.raw, "/") {
		return nil, n, nil
	}
	if binary.LittleEndian.Uint16(b[8:])&1 != 0 {
		return fail(e.raw, "the record is encrypted")
	}
	switch e.method {
	case 0:
		if e.Size != e.packed {
			return fail(e.raw, "stored size %d differs from size %d", e.packed, e.Size)
		}
	case 8:
		if e.Size > r.opts.MaxInflated || e.Size > (e.packed+64)*r.opts.MaxRatio {
			return nil, 0, &FormatError{e.raw, at, fmt.Sprintf("claims to grow from %d to %d bytes", e.packed, e.Size), ErrLimit}
		}
	default:
		return fail(e.raw, "compression method %d is not supported (want stored or deflated)", e.method)
	}
	h, err := r.slice(local, 30)
	if err != nil || binary.LittleEndian.Uint32(h) != sigLocal {
		return fail(e.raw, "no local header at %d", local)
	}
	e.Offset = local + 30 + int64(binary.LittleEndian.Uint16(h[26:])) + int64(binary.LittleEndian.Uint16(h[28:]))
	if e.Size < 0 || e.packed < 0 || e.Offset > r.size || e.packed > r.size-e.Offset {
		return fail(e.raw, "%d bytes at %d leave the file of %d bytes", e.packed, e.Offset, r.size)
	}
	return e, n, nil
}

// zip64 replaces saturated fields by those of the zip64 extra field.
func zip64(extra []byte, fields ...*int64) {
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if len(extra) < 4+n {
			return
		}
		body := extra[4 : 4+n]
		extra = extra[4+n:]
		if id != 1 {
			continue
		}
		for _, f := range fields {
			if *f == 0xffffffff && len(body) >= 8 {
				*f = int64(binary.LittleEndian.Uint64(body))
				body = body[8:]
			}
		}
	}
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("empty name")
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
		return fmt.Errorf("the name has bytes that no path may have")
	case strings.HasPrefix(name, "/"):
		return fmt.Errorf("the name is an absolute path")
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return fmt.Errorf("the name leaves the archive")
		}
	}
	return nil
}

// checkLayout refuses records that overlap each other or the directory.
func (r *Reader) checkLayout(dirOff int64) error {
	byOff := append([]*Record(nil), r.records...)
	sort.Slice(byOff, func(i, j int) bool { return byOff[i].Offset < byOff[j].Offset })
	for i, e := range byOff {
		end := e.Offset + e.packed
		next := dirOff
		if i+1 < len(byOff) && byOff[i+1].packed > 0 {
			next = byOff[i+1].Offset
		}
		if e.packed > 0 && end > next {
			return &FormatError{e.raw, e.Offset, "the record overlaps the next one", ErrFormat}
		}
	}
	return nil
}

// findRoot takes the root folder from the first entry, if all entries lie in it.
func (r *Reader) findRoot() {
	if len(r.records) > 0 {
		if folder, _, ok := strings.Cut(r.records[0].raw, "/"); ok {
			root := folder + "/"
			all := true
			for _, e := range r.records {
				all = all && strings.HasPrefix(e.raw, root)
			}
			if all {
				r.root = root
			}
		}
	}
	for _, e := range r.records {
		e.Name = strings.TrimPrefix(e.raw, r.root)
	}
}

// IsPT2 reports the archive_format record that marks a PT2 archive of PyTorch 2.8 and later.
func (r *Reader) IsPT2() bool {
	s, err := r.ReadString(FormatPath)
	return err == nil && strings.TrimSpace(s) == FormatValue
}

// Version is the archive version; a missing record counts as 0.
func (r *Reader) Version() (string, error) {
	if !r.Has(VersionPath) {
		return "0", nil
	}
	s, err := r.ReadString(VersionPath)
	return strings.TrimSpace(s), err
}

// IsPT2Package reports whether the file at path is a PT2 archive (torch.export.pt2_archive's is_pt2_package). It is false for
// whatever cannot be read.
func IsPT2Package(path string) bool {
	r, err := Open(path, Options{})
	if err != nil {
		return false
	}
	defer r.Close()
	return r.IsPT2()
}

// IsPT2PackageBytes is [IsPT2Package] for an archive in memory.
func IsPT2PackageBytes(b []byte) bool {
	r, err := NewBytes(b, Options{})
	return err == nil && r.IsPT2()
}
