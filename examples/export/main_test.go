package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The numbers are what PyTorch's model gave when digits.py had trained it.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(filepath.Join(t.TempDir(), "digits.pt2"), &out); err != nil {
		t.Fatal(err)
	}
	want := "image 0 shows a 3 (1.000)\nimage 1 shows a 0 (1.000)\nimage 2 shows a 5 (1.000)\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
