package main

import (
	"strings"
	"testing"
)

// The numbers are what PyTorch printed when scorer.py made the archive.
func TestRun(t *testing.T) {
	var out strings.Builder
	t.Chdir(t.TempDir()) // the binary needs no file
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	if want := "row 0: class 2 with 0.4329\nrow 1: class 1 with 0.3863\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
