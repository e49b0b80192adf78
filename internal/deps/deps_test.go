// Package deps holds the picture of who may import whom, as a test.
package deps

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/pt2go/pt2"

// rows are the layers, lowest first. A package imports only rows below its own; a sub-package may import its parent.
var rows = [][]string{
	{"internal/pool", "internal/mmap", "internal/newfile", "internal/pickle"},
	{"tensor", "symbolic", "pytree", "archive", "kernels/cpu"},
	{"aten", "schema", "tensor/tensorio"},
	{"export", "export/passes", "guards"},
	{"plan"},
	{"interp", "loader"},
	{"", "conformance", "tracer", "tracer/nn", "tracer/functional", "examples/internal/data"},
	{"examples/internal/vision"},
	{"cmd/pt2", "examples/classify", "examples/faces", "examples/pitch", "examples/service", "examples/embed", "examples/export"},
}

func TestImportDirections(t *testing.T) {
	row := map[string]int{}
	for i, r := range rows {
		for _, p := range r {
			row[strings.TrimSuffix(module+"/"+p, "/")] = i
		}
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		pkg, imports, _ := strings.Cut(line, ": ")
		r, ok := row[pkg]
		if !ok {
			if !strings.HasPrefix(pkg, module+"/internal/") {
				t.Errorf("%s is in no row: add it to the picture", pkg)
			}
			continue
		}
		for _, imp := range strings.Fields(imports) {
			s, ours := row[imp]
			if ours && s >= r && !strings.HasPrefix(pkg, imp+"/") {
				t.Errorf("%s imports %s, which is not below it", pkg, imp)
			}
		}
	}
}
