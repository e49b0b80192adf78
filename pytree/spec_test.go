package pytree

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// golden reads testdata/specs.jsonl, which testdata/specs.py made with PyTorch: the serialized spec, its repr, its key paths.
func golden(t testing.TB) (out []struct {
	Text, Repr string
	Paths      []string
}) {
	f, err := os.Open("testdata/specs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var row struct {
			Text, Repr string
			Paths      []string
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

func TestSpecsAsInPyTorch(t *testing.T) {
	rows := golden(t)
	if len(rows) < 20 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		s, err := Parse(row.Text, map[string][]string{"my.P": {"a", "b"}})
		if err != nil {
			t.Errorf("%s: %v", row.Text, err)
			continue
		}
		if got := s.Encode(); got != row.Text {
			t.Errorf("encoded\n got %s\nwant %s", got, row.Text)
		}
		// The class of a named tuple is not in the archive.
		if got := s.String(); got != strings.ReplaceAll(row.Repr, "__main__.P", "my.P") {
			t.Errorf("printed\n got %s\nwant %s", got, row.Repr)
		}
		paths := []string{}
		for _, p := range s.Paths() {
			text := ""
			for _, k := range p {
				text += k.String()
			}
			paths = append(paths, text)
		}
		if row.Paths == nil {
			row.Paths = []string{}
		}
		if !reflect.DeepEqual(row.Paths, paths) {
			t.Errorf("%s: paths %q, want %q", row.Repr, paths, row.Paths)
		}
		if s.NumLeaves() != len(row.Paths) {
			t.Errorf("%s: %d leaves, want %d", row.Repr, s.NumLeaves(), len(row.Paths))
		}
	}
}

func TestUnflattenThenFlatten(t *testing.T) {
	for _, row := range golden(t) {
		s, err := Parse(row.Text, map[string][]string{"my.P": {"a", "b"}})
		if err != nil {
			t.Fatal(err)
		}
		leaves := make([]any, s.NumLeaves())
		for i := range leaves {
			leaves[i] = int64(i)
		}
		v, err := s.Unflatten(leaves)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Flatten(v)
		if err != nil {
			t.Errorf("%s: %v", row.Repr, err)
		} else if !reflect.DeepEqual(leaves, got) {
			t.Errorf("%s: %v", row.Repr, got)
		}
	}
}

func TestOldNamedTuple(t *testing.T) {
	s, err := Parse(`[1, {"type": "collections.namedtuple", "context": {"class_name": "Pt", "fields": ["x", "y"]}, "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Keys()[1].String(); got != ".y" {
		t.Errorf("second key %q, want .y", got)
	}
	got, err := s.Flatten(struct{ Y, X int }{Y: 2, X: 1})
	if err != nil || !reflect.DeepEqual(got, []any{int64(1), int64(2)}) {
		t.Errorf("%v %v", err, got)
	}
}

func TestBadSpecs(t *testing.T) {
	leaf := `{"type": null, "context": null, "children_spec": []}`
	for text, want := range map[string]string{
		``:        "want [protocol, tree]",
		`[1]`:     "want [protocol, tree]",
		`[2, {}]`: "Unknown protocol 2. Available protocols: [1]",
		`[1, 5]`:  "cannot unmarshal",
		`[1, {"type": "builtins.dict", "context": "[\"a\"]", "children_spec": []}]`:                                                          "1 keys for 0 children",
		`[1, {"type": null, "context": null, "children_spec": [` + leaf + `]}]`:                                                              "a leaf with children",
		`[1, {"type": "", "context": null, "children_spec": []}]`:                                                                            "a type without a name",
		`[1, ` + strings.Repeat(`{"type":"builtins.tuple","context":"null","children_spec":[`, 500) + leaf + strings.Repeat("]}", 500) + `]`: "deep",
	} {
		_, err := Parse(text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, row := range golden(f) {
		f.Add(row.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, map[string][]string{"my.P": {"a", "b"}})
		if err != nil {
			return
		}
		again, err := Parse(s.Encode(), map[string][]string{"my.P": {"a", "b"}})
		if err != nil {
			t.Fatalf("%s: %v", s.Encode(), err)
		}
		if s.String() != again.String() || s.Encode() != again.Encode() || !s.Equal(again) {
			t.Fatalf("%s became %s", s.Encode(), again.Encode())
		}
		leaves := make([]any, s.NumLeaves())
		if _, err := s.Unflatten(leaves); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := s.Bind(leaves, &v); err != nil {
			t.Fatal(err)
		}
	})
}
