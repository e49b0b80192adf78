package data

import (
	"os"
	"testing"
)

func TestPath(t *testing.T) {
	if _, err := os.Stat(Path("real-public", "manifest.jsonl")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if got := Path("x"); got != "testdata/x" {
		t.Errorf("outside the repository: %q", got)
	}
}
