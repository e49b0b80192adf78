package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// TestWriterBytes holds the writer against a file by PyTorch, byte for byte.
func TestWriterBytes(t *testing.T) {
	want := golden(t, "writer.pt2")
	r, err := NewBytes(want, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := NewWriter(&b, "")
	for i, e := range r.Records() {
		c, _ := r.Contents(e)
		if i%2 == 0 {
			err = w.WriteBytes(e.Name, c)
		} else {
			err = w.WriteFrom(e.Name, bytes.NewReader(c), e.Size)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got %d bytes, PyTorch wrote %d, or the same number of others", b.Len(), len(want))
	}
}

func TestWriterTrailer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my model.v1.pt2")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteString("models/model.json", "{}"); err != nil {
		t.Fatal(err)
	}
	if !w.Has("models/model.json") || w.Has("models/") || w.CountPrefix("m") != 1 || w.CountPrefix("x") != 0 {
		t.Error("Has or CountPrefix is wrong")
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteString("late", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("writing after Close gives %v", err)
	}
	r, err := Open(path, Options{CheckAll: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := []string{"models/model.json", "archive_format", "archive_version", ".data/version", "byteorder", ".data/serialization_id"}
	if r.Root() != "my model.v1/" || !reflect.DeepEqual(r.Names(), want) {
		t.Errorf("root %q, names %q", r.Root(), r.Names())
	}
	if id, _ := r.ReadString(idPath); len(id) != 40 || strings.Trim(id, "0123456789") != "" {
		t.Errorf("serialization id %q", id)
	}
	for _, e := range r.Records() {
		if e.Offset%Align != 0 {
			t.Errorf("%s lies at %d", e.Name, e.Offset)
		}
		if b, _ := r.Contents(e); r.Mapped() && len(b) > 0 && uintptr(unsafe.Pointer(&b[0]))%Align != 0 {
			t.Errorf("%s is not aligned in memory", e.Name)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, "")
	if err := w.WriteString("a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteString("a", "2"); !errors.Is(err, ErrExist) || !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second record of one name gives %v", err)
	}
	for _, name := range []string{"", "/abs", "../up", "a/../../b", `a\b`, "dir/", "\xff", strings.Repeat("n", 1<<16)} {
		var typed *NameError
		if err := w.WriteString(name, ""); !errors.As(err, &typed) || !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%.20q gives %v", name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := readAll(b.Bytes(), Options{}); err != nil {
		t.Errorf("after refused writes: %v", err)
	}
	for _, size := range []int64{2, 4, -1} {
		w := NewWriter(io.Discard, "")
		if err := w.WriteFrom("a", strings.NewReader("abc"), size); err == nil {
			t.Errorf("three bytes were taken for %d", size)
		}
	}
	if err := w.WriteFile("f", filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if err := w.WriteFolder("f", "writer_test.go"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a file for a folder gives %v", err)
	}
}

// full fails after some bytes, as a disk does.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestWriterFullDisk(t *testing.T) {
	w := NewWriter(&full{100_000}, "")
	w.WriteBytes("a", make([]byte, 300_000))
	if err := w.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Close gives %v", err)
	}
}

func TestWriteFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "sub/deep/b", ".hidden", ".git/c"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644)
	}
	var b bytes.Buffer
	w := NewPlainWriter(&b)
	if err := errors.Join(w.WriteFolder("extra/", dir), w.Close()); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range z.File {
		got = append(got, f.Name)
	}
	if want := []string{"extra/a", "extra/sub/deep/b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// sparse is a file whose zeros take no room.
type sparse struct{ f *os.File }

var zeros [1 << 16]byte

func (s sparse) Write(b []byte) (int, error) {
	if len(b) == len(zeros) && bytes.Equal(b, zeros[:]) {
		_, err := s.f.Seek(int64(len(b)), io.SeekCurrent)
		return len(b), err
	}
	return s.f.Write(b)
}

// zeroReader gives zeros, then one last byte.
type zeroReader struct{ left int64 }

func (z *zeroReader) Read(b []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.left)
	clear(b[:n])
	if z.left -= n; z.left == 0 {
		b[n-1] = 7
	}
	return int(n), nil
}

// TestOver4GiB needs the zip64 fields of sizes, of offsets and of the end of the directory.
func TestOver4GiB(t *testing.T) {
	if testing.Short() || uint64(^uintptr(0)) < 1<<33 {
		t.Skip("an archive of more than 4 GiB")
	}
	const big = 4<<30 + 100
	path := filepath.Join(t.TempDir(), "big.pt2")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(sparse{f}, "")
	err = errors.Join(w.WriteString("before", "b"), w.WriteFrom("big", &zeroReader{big}, big), w.WriteString("after", "a"), w.Close(), f.Close())
	if err != nil {
		t.Skip("this file system has no room: ", err)
	}
	r, err := Open(path, Options{SkipChecksums: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec, err := r.Record("big")
	if err != nil || rec.Size != big || rec.Offset%Align != 0 {
		t.Fatalf("%+v, %v", rec, err)
	}
	if b, err := r.Contents(rec); err != nil || r.Mapped() && b[big-1] != 7 {
		t.Errorf("the large record: %v", err)
	}
	if s, err := r.ReadString("after"); s != "a" || err != nil {
		t.Errorf("the record behind it: %q, %v", s, err)
	}
	torch(t, path, `
assert r.get_file_names()[:3] == ["before", "big", "after"], r.get_file_names()
assert r.read_string("after") == "a"`)
}

// torch runs Python lines on a PyTorch reader r of the archive at path, where the environment names a python with torch.
func torch(t *testing.T, path, lines string) {
	python := os.Getenv("PT2_TORCH_PYTHON")
	if python == "" {
		return
	}
	script := "import sys\nfrom torch.export.pt2_archive._package import PT2ArchiveReader\nr = PT2ArchiveReader(sys.argv[1])\n" + lines
	if out, err := exec.Command(python, "-c", script, path).CombinedOutput(); err != nil {
		t.Errorf("PyTorch: %v\n%s", err, out)
	}
}

func TestTorchReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pt2")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteString("extra/é", "é"), w.WriteBytes("data/weights/weight_0", make([]byte, 1000)), w.WriteBytes("empty", nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	torch(t, path, `
assert r.archive_version() == 0
assert r.read_string("extra/é") == "é"
assert r.read_bytes("data/weights/weight_0") == bytes(1000)
assert r.read_bytes("empty") == b""`)
}
