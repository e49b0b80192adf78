package pt2_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The names and tests that docs/torch-export-api.md speaks of must exist.
func TestAPIDocumentIsTrue(t *testing.T) {
	text, err := os.ReadFile("docs/torch-export-api.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	checked := 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z0-9]+)\\.([A-Z][A-Za-z0-9.]*)`").FindAllStringSubmatch(strings.Join(cells[len(cells)-2:], " "), -1) {
			if known[m[1]] == nil {
				known[m[1]] = declared(t, m[1])
			}
			checked++
			if !known[m[1]][m[2]] {
				t.Errorf("there is no %s.%s", m[1], m[2])
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d names were found", checked)
	}
}

// declared lists the names of a package: functions, types, variables, methods as Type.Method, tests.
func declared(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	dir := pkg
	switch pkg {
	case "pt2":
		dir = "."
	case "passes":
		dir = "export/passes"
	case "nn", "functional":
		dir = "tracer/" + pkg
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if i, ok := x.(*ast.IndexExpr); ok {
		x = i.X
	}
	return x.(*ast.Ident).Name + "."
}

// Every row of the reference is answered: by its number, or, in the parts about tracing, by the names that stand in it.
func TestAPIDocumentIsWhole(t *testing.T) {
	text, err := os.ReadFile("docs/torch-export-api.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/torch-export-api.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_]+)*`).FindAllString(string(text), -1) {
		words[w] = true
	}
	checked := 0
	for _, line := range strings.Split(string(rows), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		checked++
		tracing := strings.HasPrefix(fields[0], "EX") || strings.HasPrefix(fields[0], "DS") || strings.HasPrefix(fields[0], "DE")
		if !words[fields[0]] && !tracing {
			t.Errorf("row %s is not answered", fields[0])
		}
		for _, name := range fields[1:] {
			if !words[name] && !words[fields[0]] {
				t.Errorf("row %s: %s is not answered", fields[0], name)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d rows", checked)
	}
}
