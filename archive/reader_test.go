package archive

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

func golden(t testing.TB, name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var writerNames = []string{"models/model.json", "data/weights/weight_0", "data/weights/weight_1", "extra/é", "archive_format",
	"archive_version", ".data/version", "byteorder", ".data/serialization_id"}

// ways opens one file in all the ways there are.
func ways(t *testing.T, name string) map[string]*Reader {
	b := golden(t, name)
	out := map[string]*Reader{}
	add := func(way string, r *Reader, err error) {
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		out[way] = r
	}
	r, err := Open(filepath.Join("testdata", name), Options{CheckAll: true})
	add("path", r, err)
	r, err = NewBytes(b, Options{})
	add("bytes", r, err)
	r, err = NewReader(bytes.NewReader(b), int64(len(b)), Options{})
	add("reader", r, err)
	r, err = OpenFS(os.DirFS("testdata"), name, Options{})
	add("DirFS", r, err)
	r, err = OpenFS(fstest.MapFS{name: {Data: b}}, name, Options{})
	add("MapFS", r, err)
	return out
}

func TestReader(t *testing.T) {
	for way, r := range ways(t, "writer.pt2") {
		if r.Root() != "archive/" || !reflect.DeepEqual(r.Names(), writerNames) {
			t.Errorf("%s: root %q, names %q", way, r.Root(), r.Names())
		}
		w, err := r.ReadBytes("data/weights/weight_0")
		if err != nil || len(w) != 100 || w[99] != 99 {
			t.Errorf("%s: weight_0 is %v, %v", way, w, err)
		}
		if s, err := r.ReadString("extra/é"); s != "é" || err != nil {
			t.Errorf("%s: extra is %q, %v", way, s, err)
		}
		if b, err := r.ReadBytes("data/weights/weight_1"); len(b) != 0 || err != nil {
			t.Errorf("%s: the empty record is %v, %v", way, b, err)
		}
		if v, err := r.ArchiveVersion(); v != 0 || err != nil || !r.IsPT2() {
			t.Errorf("%s: version %d, %v; PT2 %v", way, v, err, r.IsPT2())
		}
		if n := r.CountPrefix("data/w"); n != 2 {
			t.Errorf("%s: CountPrefix gives %d", way, n)
		}
		_, err = r.ReadBytes("models/other.json")
		if !errors.Is(err, ErrNotFound) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "models/other.json") {
			t.Errorf("%s: a missing record gives %v", way, err)
		}
		rec, _ := r.Record("data/weights/weight_0")
		if !rec.Stored() || rec.Offset%Align != 0 {
			t.Errorf("%s: weight_0 lies at %d", way, rec.Offset)
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Errorf("%s: Close: %v", way, err)
		}
		if _, err := r.ReadBytes("byteorder"); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: reading after Close gives %v", way, err)
		}
	}
}

func TestNoCopy(t *testing.T) {
	b := golden(t, "writer.pt2")
	r, err := NewBytes(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := r.Record("data/weights/weight_0")
	if w, _ := r.Contents(rec); &w[0] != &b[rec.Offset] || cap(w) != len(w) {
		t.Error("a stored record was copied, or can be appended to in place")
	}
}

func TestLegacyLayout(t *testing.T) {
	for way, r := range ways(t, "legacy.pt2") {
		want := []string{"serialized_exported_program.json", "version", "extra_files/a/b", "extra_files/empty"}
		if r.Root() != "" || !reflect.DeepEqual(r.Names(), want) || r.IsPT2() {
			t.Errorf("%s: root %q, names %q, PT2 %v", way, r.Root(), r.Names(), r.IsPT2())
		}
		if s, err := r.ReadString("extra_files/a/b"); s != strings.Repeat("text", 100) || err != nil {
			t.Errorf("%s: the deflated record is %q, %v", way, s, err)
		}
	}
}

func TestFS(t *testing.T) {
	r, err := NewBytes(golden(t, "writer.pt2"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(r.FS(), writerNames...); err != nil {
		t.Error(err)
	}
}

func TestIsPT2Package(t *testing.T) {
	for name, want := range map[string]bool{"writer.pt2": true, "legacy.pt2": false, "make.py": false, "none": false} {
		if got := IsPT2Package(filepath.Join("testdata", name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !IsPT2PackageBytes(golden(t, "writer.pt2")) || IsPT2PackageBytes(nil) {
		t.Error("IsPT2PackageBytes is wrong")
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]int{"12": 12, "x": -1} {
		var b bytes.Buffer
		w := NewWriter(&b, "")
		w.WriteString(VersionPath, text)
		w.Close()
		r, err := NewBytes(b.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.ArchiveVersion(); (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

func TestTextMustBeUTF8(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, "")
	w.WriteBytes("a", []byte{0xff})
	w.Close()
	r, _ := NewBytes(b.Bytes(), Options{})
	if _, err := r.ReadString("a"); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v", err)
	}
}

func TestExtractTo(t *testing.T) {
	r, err := NewBytes(golden(t, "writer.pt2"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, outside := t.TempDir(), t.TempDir()
	n, err := r.ExtractTo(dir, func(name string) bool { return strings.HasPrefix(name, "data/") })
	if n != 2 || err != nil {
		t.Fatalf("%d files, %v", n, err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "data/weights/weight_0")); len(b) != 100 {
		t.Errorf("weight_0 has %d bytes", len(b))
	}
	if err := os.Symlink(outside, filepath.Join(dir, "extra")); err != nil {
		t.Skip(err)
	}
	if _, err := r.ExtractTo(dir, nil); err == nil {
		t.Error("a link out of the folder was followed")
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("%v was written outside", left)
	}
}
