package passes_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/loader"
)

// TestPyTorchRunsWhatWeDecompose lets PyTorch load and run programs that were taken apart here, with guards, and logs how many have
// the very operators of its own run_decompositions().
func TestPyTorchRunsWhatWeDecompose(t *testing.T) {
	python := golden.Python(t)
	dir := t.TempDir()
	var list bytes.Buffer
	n := 0
	for corpus, every := range map[string]int{"edge-public": 4, "reports-public": 4, "opinfo-public": 150, "suite-public": 60} {
		root, err := conformance.Unpack(filepath.Join(golden.Root(t), "testdata", corpus+".tar.zst"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		models, _ := filepath.Glob(filepath.Join(root, "*", "model.pt2"))
		for i := 0; i < len(models); i += every {
			out := filepath.Join(dir, fmt.Sprintf("%d.pt2", n))
			if decomposeFile(models[i], out) == nil {
				n++
				fmt.Fprintf(&list, "%s\t%s\t%s\t%s\n", filepath.Base(filepath.Dir(models[i])), models[i], out, filepath.Join(filepath.Dir(models[i]), "expected.pt"))
			}
		}
	}
	file := filepath.Join(dir, "list.tsv")
	if err := os.WriteFile(file, list.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	verdicts, err := exec.Command(python, filepath.Join("testdata", "decomposed.py"), file).Output()
	if err != nil {
		t.Fatal(err)
	}
	judged, alike := 0, 0
	for sc := bufio.NewScanner(bytes.NewReader(verdicts)); sc.Scan(); judged++ {
		f := strings.Split(sc.Text(), "\t")
		if len(f) == 3 && f[2] == "operators" {
			alike++
		}
		if len(f) < 2 || f[1] != "same" {
			t.Error(sc.Text())
		}
	}
	if judged != n {
		t.Errorf("%d of %d programs were judged", judged, n)
	}
	t.Logf("%d programs, %d with PyTorch's operators", judged, alike)
}

func decomposeFile(from, to string) error {
	c, err := loader.Open(from, loader.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.Program("")
	if err != nil {
		return err
	}
	if p, err = passes.RunDecompositions(p, nil, nil); err != nil {
		return err
	}
	return loader.SaveFile(to, p, loader.SaveOptions{})
}
