package archive

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"testing"
)

// part is one record of a hand-made zip; zero fields are filled in truthfully.
type part struct {
	name, localName string
	data            []byte // as it lies in the file
	method          uint16
	flags           uint16
	size, packed    int64
	local           int64 // offset of the local header
	crc             uint32
}

func makeZip(parts ...part) []byte {
	var b, dir []byte
	for _, p := range parts {
		if p.localName == "" {
			p.localName = p.name
		}
		if p.local == 0 {
			p.local = int64(len(b))
			h := make([]byte, 30)
			le.PutUint32(h, sigLocal)
			le.PutUint16(h[26:], uint16(len(p.localName)))
			b = append(append(append(b, h...), p.localName...), p.data...)
		}
		if p.packed == 0 {
			p.packed = int64(len(p.data))
		}
		if p.size == 0 {
			p.size = p.packed
		}
		if p.crc == 0 {
			p.crc = crc32.ChecksumIEEE(p.data)
		}
		h := make([]byte, 46)
		le.PutUint32(h, sigCentral)
		le.PutUint16(h[8:], p.flags)
		le.PutUint16(h[10:], p.method)
		le.PutUint32(h[16:], p.crc)
		le.PutUint32(h[20:], uint32(p.packed))
		le.PutUint32(h[24:], uint32(p.size))
		le.PutUint16(h[28:], uint16(len(p.name)))
		le.PutUint32(h[42:], uint32(p.local))
		dir = append(append(dir, h...), p.name...)
	}
	e := make([]byte, 22)
	le.PutUint32(e, sigEnd)
	le.PutUint16(e[10:], uint16(len(parts)))
	le.PutUint32(e[12:], uint32(len(dir)))
	le.PutUint32(e[16:], uint32(len(b)))
	return append(append(b, dir...), e...)
}

func deflated(data []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// readAll opens a file and reads all that is in it.
func readAll(b []byte, opts Options) error {
	r, err := NewBytes(b, opts)
	if err != nil {
		return err
	}
	for _, e := range r.Records() {
		if _, err := r.Contents(e); err != nil {
			return err
		}
	}
	return nil
}

func TestHostile(t *testing.T) {
	x := part{name: "x", data: []byte("hello")}
	zeros := deflated(make([]byte, 1<<20))
	sum := crc32.ChecksumIEEE(make([]byte, 1<<20))
	good := makeZip(x)
	for _, c := range []struct {
		name string
		b    []byte
		opts Options
		want error
	}{
		{"good", good, Options{}, nil},
		{"same folder twice", makeZip(part{name: "d/"}, x), Options{}, nil},
		{"deflated", makeZip(part{name: "x", data: zeros, method: 8, size: 1 << 20, crc: sum}), Options{}, nil},
		{"empty", nil, Options{}, ErrNotPT2},
		{"cut at the end", good[:len(good)-1], Options{}, ErrNotPT2},
		{"cut in front", good[1:], Options{}, ErrFormat},
		{"twice", makeZip(x, x), Options{}, ErrFormat},
		{"absolute", makeZip(part{name: "/x"}), Options{}, ErrFormat},
		{"leaves", makeZip(part{name: "a/../../x"}), Options{}, ErrFormat},
		{"backslash", makeZip(part{name: `..\x`}), Options{}, ErrFormat},
		{"no name", makeZip(part{}), Options{}, ErrFormat},
		{"not UTF-8", makeZip(part{name: "\xff"}), Options{}, ErrFormat},
		{"other local name", makeZip(part{name: "x", localName: "y"}), Options{}, ErrFormat},
		{"encrypted", makeZip(part{name: "x", flags: 1}), Options{}, ErrFormat},
		{"method", makeZip(part{name: "x", method: 12}), Options{}, ErrFormat},
		{"sizes differ", makeZip(part{name: "x", size: 3, packed: 2}), Options{}, ErrFormat},
		{"beyond the file", makeZip(part{name: "x", packed: 1 << 30}), Options{}, ErrFormat},
		{"header beyond the file", makeZip(x, part{name: "y", local: 1 << 30}), Options{}, ErrFormat},
		{"overlap", makeZip(part{name: "x", data: make([]byte, 10), packed: 40}, part{name: "y", data: make([]byte, 99)}), Options{}, ErrFormat},
		{"overlap behind an empty record", makeZip(part{name: "x", packed: 33}, part{name: "y"}, part{name: "z", data: x.data}), Options{}, ErrFormat},
		{"into the directory", makeZip(part{name: "x", packed: 9}), Options{}, ErrFormat},
		{"checksum", makeZip(part{name: "x", data: x.data, crc: 7}), Options{}, ErrChecksum},
		{"checksum while opening", makeZip(part{name: "x", data: x.data, crc: 7}), Options{CheckAll: true}, ErrChecksum},
		{"checksum skipped", makeZip(part{name: "x", data: x.data, crc: 7}), Options{SkipChecksums: true}, nil},
		{"more than deflate can", makeZip(part{name: "x", data: zeros, method: 8, size: 1 << 28}), Options{}, ErrLimit},
		{"larger than allowed", makeZip(part{name: "x", data: zeros, method: 8, size: 1 << 20, crc: sum}), Options{MaxInflated: 1000}, ErrLimit},
		{"together larger than allowed", makeZip(part{name: "x", data: zeros, method: 8, size: 1 << 20, crc: sum}, part{name: "y", data: zeros, method: 8, size: 1 << 20, crc: sum}), Options{MaxInflatedTotal: 1<<20 + 9}, ErrLimit},
		{"ratio", makeZip(part{name: "x", data: zeros, method: 8, size: 1 << 20, crc: sum}), Options{MaxRatio: 10}, ErrLimit},
		{"inflates to less", makeZip(part{name: "x", data: zeros, method: 8, size: 1<<20 + 1, crc: sum}), Options{}, ErrFormat},
		{"inflates to more", makeZip(part{name: "x", data: zeros, method: 8, size: 1<<20 - 1, crc: sum}), Options{}, ErrFormat},
		{"no deflate stream", makeZip(part{name: "x", data: []byte("\xff\xff\xff"), method: 8}), Options{}, ErrFormat},
		{"too many", makeZip(x, part{name: "y"}), Options{MaxRecords: 1}, ErrLimit},
	} {
		err := readAll(c.b, c.opts)
		var typed *FormatError
		if !errors.Is(err, c.want) || err != nil && !errors.As(err, &typed) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// TestDamage changes each byte of a good archive: an error or the same contents, never a panic.
func TestDamage(t *testing.T) {
	good := golden(t, "writer.pt2")
	for i := range good {
		for _, flip := range []byte{1, 0x80, 0xff} {
			bad := append([]byte(nil), good...)
			bad[i] ^= flip
			readAll(bad, Options{})
		}
		if readAll(good[:i], Options{}) == nil {
			t.Errorf("cut to %d bytes it was still read", i)
		}
	}
}

// failing gives an error from some place on.
type failing struct {
	b    []byte
	from int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, io.ErrClosedPipe
	}
	return copy(p, f.b[off:]), nil
}

func TestFailingSource(t *testing.T) {
	b := golden(t, "writer.pt2")
	if _, err := NewReader(failing{b, 10}, int64(len(b)), Options{}); err == nil {
		t.Error("a source that fails was opened")
	}
	if _, err := NewReader(bytes.NewReader(b), int64(len(b))+5000, Options{}); err == nil {
		t.Error("a source shorter than said was opened")
	}
	if _, err := NewReader(bytes.NewReader(b), -1, Options{}); err == nil {
		t.Error("a negative size was taken")
	}
}

func TestSniff(t *testing.T) {
	safetensors := append([]byte{60, 0, 0, 0, 0, 0, 0, 0}, `{"a":{"dtype":"F32"`...)
	for head, want := range map[string]FileKind{
		"": KindEmpty, "PK\x03\x04": KindZip, "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.": KindPickle,
		"\x08\x07\x12\x07pytorch\x1a": KindONNX, string(safetensors): KindSafetensors, "GGUF\x03": KindGGUF,
		"version https://git-lfs.github.com/spec/v1\n": KindLFS, "\n<!DOCTYPE HTML><html>": KindHTML, "<html>": KindHTML,
		"\x7fELF\x02": KindELF, "\x1f\x8b\x08": KindGzip, "{\"a\": 1}": KindJSON, "\x1c\x00\x00\x00TFL3": KindTFLite,
		"hello": KindUnknown, "\x93NUMPY\x01": KindNPY, "\x89HDF\r\n\x1a\n": KindHDF5,
	} {
		if got := Sniff([]byte(head)); got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
	}
	for names, want := range map[string]string{"code/a.py": "TorchScript", "data.pkl": "checkpoint",
		"data/aotinductor/m/x.so": "AOTInductor", "data/executorch/m.pte": "ExecuTorch", "x": "zip file"} {
		var b bytes.Buffer
		w := NewTorchWriter(&b)
		w.WriteString(names, "")
		w.Close()
		r, err := NewBytes(b.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Describe(); !bytes.Contains([]byte(got), []byte(want)) {
			t.Errorf("%s: %q", names, got)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(golden(f, "writer.pt2"))
	f.Add(golden(f, "legacy.pt2"))
	f.Add(makeZip(part{name: "a/b", data: []byte("x")}, part{name: "a/c/"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewBytes(b, Options{MaxInflated: 1 << 20, MaxInflatedTotal: 1 << 22})
		if err != nil {
			return
		}
		var again bytes.Buffer
		w := NewWriter(&again, "")
		for _, e := range r.Records() {
			c, err := r.Contents(e)
			if err != nil {
				return
			}
			if int64(len(c)) != e.Size {
				t.Fatalf("%q has %d bytes, the directory says %d", e.Name, len(c), e.Size)
			}
			if err := w.WriteBytes(e.Name, c); err != nil {
				return // names that a reader of foreign zips takes and our writer does not
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r2, err := NewBytes(again.Bytes(), Options{CheckAll: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Records() {
			want, _ := r.Contents(e)
			got, err := r2.ReadBytes(e.Name)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatal(fmt.Errorf("%q came back changed: %w", e.Name, err))
			}
		}
	})
}
