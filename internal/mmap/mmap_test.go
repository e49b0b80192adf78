package mmap

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, n := range []int{0, 1, 4096, 100_000} {
		want := bytes.Repeat([]byte{7}, n)
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Data, want) {
			t.Errorf("%d bytes: read %d others", n, len(f.Data))
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Errorf("%d bytes: Close: %v", n, err)
			}
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

func TestDrop(t *testing.T) {
	want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 10_000)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own := bytes.Clone(f.Data)
	for _, r := range [][2]int{{0, 50_000}, {1, 2}, {5000, 30_000}, {7, 7}} {
		Drop(f.Data[r[0]:r[1]])
		Drop(own[r[0]:r[1]]) // no mapping
	}
	if !bytes.Equal(f.Data, want) || !bytes.Equal(own, want) {
		t.Error("dropped pages read otherwise")
	}
}
