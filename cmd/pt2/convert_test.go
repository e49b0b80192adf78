package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoArguments(t *testing.T) {
	var out, text strings.Builder
	if code := run(nil, &out, &text); code != 0 || !strings.Contains(out.String(), "Available Commands") {
		t.Errorf("exit %d: %s%s", code, out.String(), text.String())
	}
}

// A file may be converted to itself; one that cannot be converted leaves what stands at the place of the result.
func TestConvertInPlace(t *testing.T) {
	good, err := os.ReadFile("../../examples/embed/scorer.pt2")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := filepath.Join(dir, "scorer.pt2")
	var text strings.Builder
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("scorer.pt2", good)
	if code := run([]string{"convert", at, at}, &text, &text); code != 0 {
		t.Fatalf("exit %d: %s", code, text.String())
	}
	once, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"convert", at, at}, &text, &text); code != 0 {
		t.Fatalf("exit %d: %s", code, text.String())
	}
	if twice, err := os.ReadFile(at); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("converted again it is another file (%v)", err)
	}
	put("bad.pt2", good[:len(good)/2])
	if code := run([]string{"convert", filepath.Join(dir, "bad.pt2"), at}, &text, &text); code == 0 {
		t.Error("half an archive is converted")
	}
	if code := run([]string{"convert", at, at, "--device", "nowhere"}, &text, &text); code == 0 {
		t.Error("any device is taken")
	}
	if b, err := os.ReadFile(at); err != nil || !bytes.Equal(once, b) {
		t.Errorf("a conversion that failed changed the file (%v)", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("%d files are left", len(files))
	}
}
