package loader_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/loader"
)

// TestPyTorchReadsWhatWeSave loads each archive of the corpora, saves it, and lets PyTorch compare the copy with the original:
// printed program, signature, ranges, guards, module calls, metadata, weights and their sharing, example inputs, and the outputs of
// all recorded calls. PT2_CORPORA lists packed corpora (separated as PATH is) to take instead of the repository's, PT2_SAMPLE how
// many cases of each: 40 by default, 0 for all.
func TestPyTorchReadsWhatWeSave(t *testing.T) {
	python := golden.Python(t)
	for _, packed := range corporaToJudge(t) {
		t.Run(strings.TrimSuffix(filepath.Base(packed), ".tar.zst"), func(t *testing.T) { judgeCorpus(t, python, packed) })
	}
}

func corporaToJudge(t *testing.T) []string {
	if list := os.Getenv("PT2_CORPORA"); list != "" {
		return filepath.SplitList(list)
	}
	files, err := filepath.Glob(filepath.Join(golden.Root(t), "testdata", "*.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// unsaved reports the cases whose weights are tensor subclasses, which are not loaded.
func unsaved(id string) bool {
	return strings.HasPrefix(id, "exp.test_export_module-0") || strings.HasPrefix(id, "exp.test_subclasses_parameterization_nested-0")
}

func judgeCorpus(t *testing.T, python, packed string) {
	root, err := conformance.Unpack(packed, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Glob(filepath.Join(root, "*", "model.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	var list bytes.Buffer
	n := 0
	for _, model := range sample(models) {
		id := filepath.Base(filepath.Dir(model))
		if unsaved(id) {
			continue
		}
		copied := filepath.Join(out, id+".pt2")
		if err := resave(model, copied); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		n++
		fmt.Fprintf(&list, "%s\t%s\t%s\t%s\n", id, model, copied, filepath.Join(filepath.Dir(model), "expected.pt"))
	}
	listFile := filepath.Join(out, "list.tsv")
	if err := os.WriteFile(listFile, list.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	verdicts, err := exec.Command(python, filepath.Join("testdata", "resave.py"), listFile).Output()
	if err != nil {
		t.Fatalf("the judge failed: %v", err)
	}
	kinds := map[string]int{}
	for sc := bufio.NewScanner(bytes.NewReader(verdicts)); sc.Scan(); {
		id, verdict, _ := strings.Cut(sc.Text(), "\t")
		switch verdict {
		case "same", "upgraded", "refused":
			kinds[verdict]++
			n--
		default:
			n--
			t.Errorf("%s: %s", id, verdict)
		}
	}
	if n != 0 {
		t.Errorf("%d cases were not judged", n)
	}
	t.Log(kinds)
}

// sample takes cases spread over a corpus.
func sample(models []string) []string {
	want := 40
	if s, err := strconv.Atoi(os.Getenv("PT2_SAMPLE")); err == nil {
		want = s
	}
	if want <= 0 || want >= len(models) {
		return models
	}
	out := make([]string, want)
	for i := range out {
		out[i] = models[i*len(models)/want]
	}
	return out
}

// resave loads an archive and saves all of it.
func resave(from, to string) error {
	c, err := loader.Open(from, loader.Options{AllowAnyDialect: true})
	if err != nil {
		return err
	}
	defer c.Close()
	pkg, err := c.Package()
	if err != nil {
		return err
	}
	return loader.PackagePT2File(to, pkg, loader.SaveOptions{})
}
