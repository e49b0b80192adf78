package conformance

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/failing.txt: cases that pass are removed; new failures are added only if the file does not exist")

// failing reads the ratchet: the cases that do not pass yet, "corpus/case<TAB>reason" a line. It may only shrink.
func failing(t *testing.T) map[string]string {
	out := map[string]string{}
	f, err := os.Open("testdata/failing.txt")
	if os.IsNotExist(err) {
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if line := sc.Text(); line != "" && !strings.HasPrefix(line, "#") {
			id, reason, _ := strings.Cut(line, "\t")
			out[id] = reason
		}
	}
	return out
}

// corpora gives the folders of all corpora in the repository's testdata, and of those in the folder PT2_CORPORA if it is set.
func corpora(t *testing.T) []string {
	dirs := []string{filepath.Join("..", "testdata", "real-public")}
	tmp := t.TempDir()
	files, _ := filepath.Glob(filepath.Join("..", "testdata", "*.tar.zst"))
	if extra := os.Getenv("PT2_CORPORA"); extra != "" {
		more, _ := filepath.Glob(filepath.Join(extra, "*.tar.zst"))
		for _, f := range more {
			known := filepath.Base(f) == "real-public.tar.zst"
			for _, g := range files {
				known = known || filepath.Base(g) == filepath.Base(f)
			}
			if !known {
				files = append(files, f)
			}
		}
	}
	for _, f := range files {
		d, err := Unpack(f, tmp)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	return dirs
}

// TestCorpora runs every case of every corpus in planned mode. A case fails the test if it is not in the ratchet.
func TestCorpora(t *testing.T) {
	known := failing(t)
	_, noFile := os.Stat("testdata/failing.txt")
	seen := map[string]string{}
	for _, dir := range corpora(t) {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			cases, err := ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			passed := 0
			for i := range cases {
				id := name + "/" + cases[i].ID
				err := Run(&cases[i], loader.Options{}, interp.Options{})
				reason, listed := known[id]
				switch {
				case err == nil:
					passed++
					if listed && !*update {
						t.Errorf("%s passes now: take it off the list with go test ./conformance -run TestCorpora -update", id)
					}
				case listed:
					seen[id] = reason
				case *update && noFile != nil:
					seen[id] = short(err)
				default:
					t.Errorf("%s: %v", id, err)
				}
			}
			t.Logf("%s: %d of %d pass, %d known failures", name, passed, len(cases), len(cases)-passed)
		})
	}
	if *update {
		writeFailing(t, seen)
	}
}

// TestEagerAgrees runs the smaller corpora node by node, the reference for planned mode.
func TestEagerAgrees(t *testing.T) {
	known := failing(t)
	for _, dir := range corpora(t) {
		name := filepath.Base(dir)
		if name == "opinfo-public" || name == "zoo-public" || strings.HasPrefix(name, "real") {
			continue // their eager runs are part of the full check in .ci/run
		}
		cases, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			id := name + "/" + cases[i].ID
			if _, listed := known[id]; listed {
				continue
			}
			if err := Run(&cases[i], loader.Options{}, interp.Options{Eager: true}); err != nil {
				t.Errorf("eager: %s: %v", id, err)
			}
		}
	}
}

// TestWithoutPasses runs the models with the planner's passes left out: what is recorded must be right by itself.
func TestWithoutPasses(t *testing.T) {
	known := failing(t)
	var names []string
	for _, p := range plan.Passes() {
		if plan.HasPass(p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, dir := range corpora(t) {
		name := filepath.Base(dir)
		if name != "zoo-selection" && name != "quantized" {
			continue
		}
		cases, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			id := name + "/" + cases[i].ID
			if _, listed := known[id]; listed {
				continue
			}
			if err := Run(&cases[i], loader.Options{}, interp.Options{WithoutPasses: names}); err != nil {
				t.Errorf("without passes: %s: %v", id, err)
			}
		}
	}
}

func short(err error) string {
	s := strings.NewReplacer("\n", " ", "\t", " ").Replace(err.Error())
	if i := strings.Index(s, "; register them"); i > 0 {
		s = s[:i]
	}
	if len(s) > 160 {
		s = s[:160]
	}
	return s
}

func writeFailing(t *testing.T, seen map[string]string) {
	var ids []string
	for id := range seen {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	b.WriteString("# Cases of the corpora that do not pass yet, with the reason. This list may only shrink.\n")
	for _, id := range ids {
		fmt.Fprintf(&b, "%s\t%s\n", id, seen[id])
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/failing.txt", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
