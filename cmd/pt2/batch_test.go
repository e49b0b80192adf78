package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/tensor/tensorio"
)

// A batch goes on behind a case that fails, and writes what every case gave.
func TestBatch(t *testing.T) {
	const data = "../../testdata/real-public/mtcnn-rnet/"
	dir := t.TempDir()
	list := filepath.Join(dir, "list.tsv")
	out := func(name string) string { return filepath.Join(dir, name+".pt") }
	lines := []string{
		data + "model.pt2\t" + data + "expected.pt\t" + out("good"),
		"none.pt2\t" + data + "expected.pt\t" + out("missing"),
		"../../loader/testdata/foreign/checkpoint.pt\t" + data + "expected.pt\t" + out("foreign"),
		"../../examples/embed/scorer.pt2\t" + data + "expected.pt\t" + out("other inputs"),
		"",
		data + "model.pt2\t" + data + "expected.pt\t" + out("named") + "\tmodel",
	}
	if err := os.WriteFile(list, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if code := run([]string{"run", "--batch", list}, &text, &text); code != 0 || !strings.Contains(text.String(), "5 cases, 2 could not be loaded or written") {
		t.Errorf("exit %d: %s", code, text.String())
	}
	want, err := conformance.ReadCalls(data + "expected.pt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "named"} {
		got, err := conformance.ReadCalls(out(name))
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %d calls, %v", name, len(got), err)
			continue
		}
		for i := range got {
			if err := conformance.Compare(got[i].Outputs, want[i].Outputs, conformance.Tolerance{RTol: 1e-3, ATol: 1e-4}); err != nil {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
	}
	for name, wantText := range map[string]string{"missing": "no such file", "foreign": "torch.save checkpoint", "other inputs": "expected"} {
		v, err := tensorio.LoadPT(out(name))
		if err != nil || !strings.Contains(fmt.Sprint(v.([]any)[0].(*tensorio.Dict).Values...), wantText) {
			t.Errorf("%s: %v %v", name, v, err)
		}
	}
	for _, bad := range []string{"model.pt2", "a\tb"} {
		if err := os.WriteFile(list, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if code := run([]string{"run", "--batch", list}, &text, &text); code != exitUsage {
			t.Errorf("%q: exit %d", bad, code)
		}
	}
}

func TestVerifyCorpusAndBench(t *testing.T) {
	var text strings.Builder
	if code := run([]string{"verify", "../../testdata/quantized.tar.zst"}, &text, &text); code != 0 || !strings.HasSuffix(text.String(), " passed, 0 failed\n") {
		t.Errorf("exit %d: %s", code, text.String())
	}
	text.Reset()
	if code := run([]string{"bench", "../../examples/embed/scorer.pt2", "--seconds", "0.05", "--threads", "1"}, &text, &text); code != 0 || text.Len() == 0 {
		t.Errorf("exit %d: %s", code, text.String())
	}
}
