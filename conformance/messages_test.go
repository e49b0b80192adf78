package conformance

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/guards"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
)

// TestGuardMessages holds the texts of refused inputs against those that PyTorch gave for the same calls.
func TestGuardMessages(t *testing.T) {
	known := failing(t)
	n := 0
	tmp := t.TempDir()
	for _, name := range []string{"suite-public", "old-public", "reports-public", "edge-public", "suite-more"} {
		dir, err := Unpack(filepath.Join("..", "testdata", name+".tar.zst"), tmp)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			if _, listed := known[filepath.Base(dir)+"/"+cases[i].ID]; !listed && cases[i].Has("error") {
				n += checkMessages(t, &cases[i])
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d messages were compared", n)
	}
}

func checkMessages(t *testing.T, c *Case) (compared int) {
	calls, err := ReadCalls(filepath.Join(c.Dir, "expected.pt"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := loader.Open(filepath.Join(c.Dir, "model.pt2"), loader.Options{})
	if err != nil {
		t.Errorf("%s: %v", c.ID, err)
		return 0
	}
	defer f.Close()
	p, err := f.Program(c.Program())
	if err != nil {
		t.Errorf("%s: %v", c.ID, err)
		return 0
	}
	for i, call := range calls {
		_, want, _ := strings.Cut(call.Error, ": ")
		withGuards := strings.HasPrefix(want, "Guard failed: ")
		if !withGuards && !strings.HasPrefix(want, "Expected input ") {
			continue
		}
		m, err := interp.New(p, interp.Options{NoGuards: !withGuards})
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			return compared
		}
		compared++
		_, err = m.Run(context.Background(), CloneInputs(call.Inputs)...)
		var guard *guards.Error
		var input *guards.InputError
		switch {
		case withGuards && errors.As(err, &guard):
			if got := "Guard failed: " + guard.Expr; got != want || !strings.HasPrefix(err.Error(), want) || guard.Path == "" || len(guard.Values) == 0 {
				t.Errorf("%s, call %d: got %q (%+v), want %q", c.ID, i, err, guard, want)
			}
		case !withGuards && errors.As(err, &input):
			// versions before 2.6 did not give the advice at the end
			if !strings.HasPrefix(input.Error(), want) {
				t.Errorf("%s, call %d: got %q, want %q", c.ID, i, input, want)
			}
		default:
			t.Errorf("%s, call %d: got %v, want %q", c.ID, i, err, want)
		}
	}
	return compared
}
