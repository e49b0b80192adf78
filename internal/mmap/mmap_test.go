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
