package export_test

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/loader"
)

// goldens reads testdata/print.tar.zst: corpus, then id, then PyTorch's text.
func goldens(t *testing.T) map[string]map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "print.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		corpus, id, ok := strings.Cut(strings.TrimSuffix(h.Name, ".txt"), "/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if out[corpus] == nil {
			out[corpus] = map[string]string{}
		}
		out[corpus][id] = string(b)
	}
}

// TestString holds printed programs and graphs against PyTorch's print(ep) and print(ep.graph).
func TestString(t *testing.T) {
	n := 0
	for corpus, texts := range goldens(t) {
		golden.EachModel(t, corpus, func(id string, model []byte) bool {
			want, ok := texts[id]
			if !ok {
				return true
			}
			graph, hasGraph := texts[id+".graph"]
			delete(texts, id)
			delete(texts, id+".graph")
			c, err := loader.OpenBytes(model, loader.Options{})
			if err != nil {
				t.Errorf("%s: %v", id, err)
				return true
			}
			p, err := c.Program("model")
			if err != nil {
				t.Errorf("%s: %v", id, err)
				return true
			}
			n++
			sameText(t, id, p.String(), want)
			if hasGraph {
				sameText(t, id+": graph", p.Graph().String(), graph)
			}
			return true
		})
		for id := range texts {
			t.Errorf("%s/%s: no such case", corpus, id)
		}
	}
	if n == 0 {
		t.Error("nothing compared")
	}
}

func sameText(t *testing.T, id, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(g), len(w))-1 && g[i] == w[i] {
		i++
	}
	t.Errorf("%s: line %d\ngot  %s\nwant %s", id, i+1, g[i], w[i])
}
