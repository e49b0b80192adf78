package schema

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pt2go/pt2/internal/golden"
)

var corpora = []string{"old-public", "opinfo-public", "suite-public", "edge-public", "reports-public", "zoo-selection", "real-public"}

// records gives the programs and the configs of an archive.
func records(tb testing.TB, model []byte) (programs, configs [][]byte) {
	tb.Helper()
	z, err := zip.NewReader(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range z.File {
		_, name, _ := strings.Cut(e.Name, "/")
		program := e.Name == "serialized_exported_program.json" || strings.HasPrefix(name, "models/") && strings.HasSuffix(name, ".json")
		config := strings.HasPrefix(name, "data/") && strings.HasSuffix(name, "_config.json")
		if !program && !config {
			continue
		}
		r, err := e.Open()
		if err != nil {
			tb.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			tb.Fatal(err)
		}
		if program {
			programs = append(programs, b)
		} else {
			configs = append(configs, b)
		}
	}
	return programs, configs
}

// TestCorpora decodes every program that PyTorch wrote. Those of today's schema are encoded to the identical text, those of
// earlier minor versions to a text that says at least the same, and all survive another round.
func TestCorpora(t *testing.T) {
	for _, corpus := range corpora {
		t.Run(corpus, func(t *testing.T) {
			golden.EachModel(t, corpus, func(id string, model []byte) bool {
				programs, configs := records(t, model)
				for _, b := range programs {
					checkProgram(t, id, b)
				}
				for _, b := range configs {
					c, err := DecodeConfig(b, Options{Strict: true})
					if err != nil {
						t.Fatalf("%s: %v", id, err)
					}
					if out, err := EncodeConfig(c); err != nil || !bytes.Equal(out, b) {
						t.Errorf("%s: config: %v\ngot  %s\nwant %s", id, err, out, b)
					}
				}
				return true
			})
		})
	}
}

func checkProgram(t *testing.T, id string, b []byte) {
	t.Helper()
	have, err := PeekVersion(b)
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	p, err := Decode(b, Options{Strict: have == Current})
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	if p.SchemaVersion != have {
		t.Errorf("%s: version %v, want %v", id, p.SchemaVersion, have)
	}
	out, err := Encode(p)
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	switch {
	case have == Current:
		if !bytes.Equal(out, b) {
			t.Errorf("%s: text differs: %s", id, firstDifference(out, b))
		}
		return
	case have.Major == Current.Major && !have.below(SchemaVersion{Major: 8, Minor: 7}):
		if diff := missing("", parseTree(string(b)), parseTree(string(out))); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	p.SchemaVersion = Current
	again, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Decode(again, Options{})
	if err != nil {
		t.Errorf("%s: after upgrade: %v", id, err)
		return
	}
	if third, err := Encode(q); err != nil || !bytes.Equal(third, again) {
		t.Errorf("%s: second round: %v %s", id, err, firstDifference(third, again))
	}
}

func firstDifference(got, want []byte) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("at %d: got ...%s, want ...%s", i, got[max(0, i-40):min(len(got), i+60)], want[max(0, i-40):min(len(want), i+60)])
}

// missing finds something that tree a says and tree b does not.
func missing(path string, a, b any) string {
	switch a := a.(type) {
	case nil:
		return ""
	case *object:
		b, ok := b.(*object)
		if !ok {
			return path + " is no object"
		}
		for _, k := range a.keys {
			if d := missing(path+"/"+k, a.vals[k], b.vals[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return path + " has another length"
		}
		for i := range a {
			if d := missing(fmt.Sprintf("%s/%d", path, i), a[i], b[i]); d != "" {
				return d
			}
		}
		return ""
	case number:
		if s, ok := b.(string); ok {
			b = number(s) // bare Infinity becomes a string
		}
		if a != b {
			return fmt.Sprintf("%s is %v, want %v", path, b, a)
		}
		return ""
	}
	if a != b {
		return fmt.Sprintf("%s is %v, want %v", path, b, a)
	}
	return ""
}

func BenchmarkDecode(b *testing.B) {
	var texts [][]byte
	size := 0
	golden.EachModel(b, "zoo-selection", func(id string, model []byte) bool {
		programs, _ := records(b, model)
		for _, p := range programs {
			size += len(p)
		}
		texts = append(texts, programs...)
		return true
	})
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, t := range texts {
			if _, err := Decode(t, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
