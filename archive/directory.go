package archive

import (
	"encoding/binary"
	"fmt"
	"path"
	"sort"
	"strings"
	"unicode/utf8"
)

// Signatures and methods of the zip format (PKWARE APPNOTE 6.3.10).
const (
	sigLocal       = 0x04034b50
	sigCentral     = 0x02014b50
	sigEnd         = 0x06054b50
	sigEnd64       = 0x06064b50
	sigLoc64       = 0x07064b50
	methodStored   = 0
	methodDeflated = 8
)

var le = binary.LittleEndian

// open reads the directory and refuses a file whose records cannot be told apart. Contents are not touched.
func open(r *Reader) (*Reader, error) {
	dir, count, off, err := r.directory()
	if err != nil {
		return nil, err
	}
	if err := r.entries(dir, count, off); err != nil {
		return nil, err
	}
	if err := r.checkLayout(off); err != nil {
		return nil, err
	}
	if !r.opts.NoRoot {
		r.root = findRoot(r.records)
	}
	r.byName = make(map[string]*Record, len(r.records))
	for _, e := range r.records {
		e.Name = strings.TrimPrefix(e.raw, r.root)
		if r.byName[e.Name] != nil {
			return nil, &FormatError{e.raw, e.Offset, "the name occurs twice", ErrFormat}
		}
		r.byName[e.Name] = e
	}
	if r.opts.CheckAll {
		for _, e := range r.records {
			if _, err := r.Contents(e); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
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
	end := findEnd(tail)
	if end < 0 {
		h, _ := r.slice(0, min(r.size, 4096))
		return bad(r.size, ErrNotPT2, "no zip directory at the end: %s", Sniff(h).Advice())
	}
	endOff := r.size - tailLen + int64(end)
	count, size, off := int64(le.Uint16(tail[end+10:])), int64(le.Uint32(tail[end+12:])), int64(le.Uint32(tail[end+16:]))
	if count == 0xffff || size == 0xffffffff || off == 0xffffffff {
		if l, err := r.slice(endOff-20, 20); err == nil && le.Uint32(l) == sigLoc64 {
			at := int64(le.Uint64(l[8:]))
			z, err := r.slice(at, 56)
			if err != nil || le.Uint32(z) != sigEnd64 {
				return bad(endOff-20, ErrFormat, "the zip64 end record is not at %d, where its locator says", at)
			}
			count, size, off = int64(le.Uint64(z[32:])), int64(le.Uint64(z[40:])), int64(le.Uint64(z[48:]))
			endOff = at
		}
	}
	if off < 0 || size < 0 || off > endOff || size > endOff-off {
		return bad(endOff, ErrFormat, "the directory (%d bytes at %d) leaves the file", size, off)
	}
	if count < 0 || count > size/46 {
		return bad(endOff, ErrFormat, "%d records in a directory of %d bytes", count, size)
	}
	if count > int64(r.opts.MaxRecords) {
		return bad(endOff, ErrLimit, "%d records, at most %d are allowed", count, r.opts.MaxRecords)
	}
	if dir, err = r.slice(off, size); err != nil {
		return bad(off, ErrFormat, "%v", err)
	}
	return dir, count, off, nil
}

// findEnd gives the place of the last end record whose comment fits, -1 if there is none.
func findEnd(tail []byte) int {
	for i := len(tail) - 22; i >= 0; i-- {
		if le.Uint32(tail[i:]) == sigEnd && i+22+int(le.Uint16(tail[i+20:])) <= len(tail) {
			return i
		}
	}
	return -1
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

// entry reads one directory entry and the local header that it points at. Folders give nil.
func (r *Reader) entry(b []byte, at int64) (*Record, int, error) {
	fail := func(name string, kind error, format string, args ...any) (*Record, int, error) {
		return nil, 0, &FormatError{name, at, fmt.Sprintf(format, args...), kind}
	}
	if len(b) < 46 || le.Uint32(b) != sigCentral {
		return fail("", ErrFormat, "the directory ends early")
	}
	nameLen, extraLen := int(le.Uint16(b[28:])), int(le.Uint16(b[30:]))
	n := 46 + nameLen + extraLen + int(le.Uint16(b[32:]))
	if len(b) < n {
		return fail("", ErrFormat, "the directory ends inside an entry")
	}
	e := &Record{
		raw:    string(b[46 : 46+nameLen]),
		method: le.Uint16(b[10:]),
		crc:    le.Uint32(b[16:]),
		packed: int64(le.Uint32(b[20:])),
		Size:   int64(le.Uint32(b[24:])),
		local:  int64(le.Uint32(b[42:])),
	}
	zip64(b[46+nameLen:46+nameLen+extraLen], &e.Size, &e.packed, &e.local)
	if reason := badName(e.raw); reason != "" {
		return fail(e.raw, ErrFormat, "%s", reason)
	}
	if le.Uint16(b[8:])&1 != 0 {
		return fail(e.raw, ErrFormat, "the record is encrypted")
	}
	if err := r.place(e); err != nil {
		return fail(e.raw, ErrFormat, "%v", err)
	}
	if strings.HasSuffix(e.raw, "/") {
		return nil, n, nil
	}
	switch {
	case e.method == methodStored && e.Size != e.packed:
		return fail(e.raw, ErrFormat, "stored size %d differs from size %d", e.packed, e.Size)
	case e.method == methodDeflated && (e.Size > r.opts.MaxInflated || e.Size/r.opts.MaxRatio > e.packed+64):
		return fail(e.raw, ErrLimit, "claims to grow from %d to %d bytes", e.packed, e.Size)
	case e.method != methodStored && e.method != methodDeflated:
		return fail(e.raw, ErrFormat, "compression method %d is not supported (want stored or deflated)", e.method)
	}
	return e, n, nil
}

// place finds a record's data behind its local header, which must carry the same name.
func (r *Reader) place(e *Record) error {
	h, err := r.slice(e.local, 30+int64(len(e.raw)))
	if err != nil || le.Uint32(h) != sigLocal {
		return fmt.Errorf("no local header at %d", e.local)
	}
	if int(le.Uint16(h[26:])) != len(e.raw) || string(h[30:]) != e.raw {
		return fmt.Errorf("the local header at %d has another name", e.local)
	}
	e.Offset = e.local + 30 + int64(len(e.raw)) + int64(le.Uint16(h[28:]))
	if e.Size < 0 || e.packed < 0 || e.Offset > r.size || e.packed > r.size-e.Offset {
		return fmt.Errorf("%d bytes at %d leave the file of %d bytes", e.packed, e.Offset, r.size)
	}
	return nil
}

// zip64 replaces saturated fields by those of the zip64 extra field.
func zip64(extra []byte, fields ...*int64) {
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
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
				*f = int64(le.Uint64(body))
				body = body[8:]
			}
		}
	}
}

// badName says why a name is refused, "" if it is fine.
func badName(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
		return "the name has bytes that no path may have"
	case strings.HasPrefix(name, "/"):
		return "the name is an absolute path"
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "the name leaves the archive"
		}
	}
	return ""
}

// checkLayout refuses records that overlap each other or the directory, headers included.
func (r *Reader) checkLayout(dirOff int64) error {
	byOff := append([]*Record(nil), r.records...)
	sort.Slice(byOff, func(i, j int) bool { return byOff[i].local < byOff[j].local })
	for i, e := range byOff {
		next := dirOff
		if i+1 < len(byOff) {
			next = byOff[i+1].local
		}
		if e.Offset+e.packed > next {
			return &FormatError{e.raw, e.Offset, "the record overlaps what comes next", ErrFormat}
		}
	}
	return nil
}

// findRoot takes the root folder from the first entry, if all entries lie in it or the marks of an archive of ours do.
func findRoot(records []*Record) string {
	if len(records) == 0 {
		return ""
	}
	folder, _, ok := strings.Cut(records[0].raw, "/")
	if !ok {
		return ""
	}
	root, all := folder+"/", true
	for _, e := range records {
		all = all && strings.HasPrefix(e.raw, root)
		if base, in := strings.CutPrefix(e.raw, root); in && (base == FormatPath || base == "data.pkl") {
			return root
		}
	}
	if !all || path.Base(root) == "." {
		return ""
	}
	return root
}
