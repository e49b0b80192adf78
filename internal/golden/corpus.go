// Package golden finds the test data of the repository: the corpora of archives that PyTorch wrote.
package golden

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Root is the root folder of the repository.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatal("golden: no go.mod above the working folder")
		}
		dir = up
	}
}

// EachModel calls f with the contents of every model.pt2 in a corpus of testdata ("old-public"), packed or not, until f returns
// false. The test is skipped on systems without the corpus.
func EachModel(tb testing.TB, corpus string, f func(id string, model []byte) bool) {
	tb.Helper()
	packed := filepath.Join(Root(tb), "testdata", corpus+".tar.zst")
	file, err := os.Open(packed)
	if err != nil {
		eachFile(tb, filepath.Join(Root(tb), "testdata", corpus), f)
		return
	}
	defer file.Close()
	z, err := zstd.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			tb.Fatalf("golden: %s: %v", packed, err)
		}
		if !strings.HasSuffix(h.Name, "/model.pt2") {
			continue
		}
		b, err := io.ReadAll(t)
		if err != nil {
			tb.Fatalf("golden: %s: %v", packed, err)
		}
		if !f(filepath.Base(filepath.Dir(h.Name)), b) {
			return
		}
	}
}

func eachFile(tb testing.TB, dir string, f func(id string, model []byte) bool) {
	tb.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "model.pt2"))
	if len(files) == 0 {
		tb.Skipf("no corpus at %s", dir)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		if !f(filepath.Base(filepath.Dir(name)), b) {
			return
		}
	}
}
