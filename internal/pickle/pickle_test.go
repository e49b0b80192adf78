package pickle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"runtime"
	"strings"
	"testing"
)

type row struct {
	Name   string
	Pickle []byte
	Good   bool
	Want   string
}

// golden reads testdata/pickles.jsonl, which testdata/make.py made with Python and PyTorch.
func golden(t testing.TB) (rows []row) {
	t.Helper()
	f, err := os.Open("testdata/pickles.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return `"` + v + `"`
	case []byte:
		return fmt.Sprintf("0x%x", v)
	case *big.Int:
		return v.String()
	case List:
		return "[" + join(v) + "]"
	case Tuple:
		return "(" + join(v) + ")"
	case Set:
		return "set(" + join(v) + ")"
	case *Dict:
		s := make([]string, len(v.Keys))
		for i := range v.Keys {
			s[i] = show(v.Keys[i]) + ": " + show(v.Values[i])
		}
		return "{" + strings.Join(s, ", ") + "}"
	case *TensorRef:
		s := fmt.Sprintf("%s%d/%d+%d of %s (%s, %d)", v.DType, v.Size, v.Stride, v.Offset, v.Storage.Key, v.Storage.DType, v.Storage.Numel)
		for _, p := range []struct {
			on   bool
			name string
		}{{v.Conj, "conj "}, {v.Neg, "neg "}, {v.Parameter, "parameter "}} {
			if p.on {
				s = p.name + s
			}
		}
		return s
	}
	return fmt.Sprint(v)
}

func join(l []any) string {
	s := make([]string, len(l))
	for i, x := range l {
		s[i] = show(x)
	}
	return strings.Join(s, " ")
}

func TestLoadAsInPython(t *testing.T) {
	rows := golden(t)
	if len(rows) < 100 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, r := range rows {
		v, err := Load(r.Pickle)
		if r.Good {
			if err != nil || show(v) != r.Want {
				t.Errorf("%s: %v\n got %s\nwant %s", r.Name, err, show(v), r.Want)
			}
			continue
		}
		var class *UnsupportedClassError
		var format *FormatError
		if err == nil || !errors.As(err, &class) && !errors.As(err, &format) || !strings.Contains(err.Error(), r.Want) {
			t.Errorf("%s: got %v %v, want an error with %s", r.Name, show(v), err, r.Want)
		}
	}
}

// What Marshal writes, Load reads back the same.
func TestMarshalThenLoad(t *testing.T) {
	for _, r := range golden(t) {
		if !r.Good {
			continue
		}
		v, err := Load(r.Pickle)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		again, err := Load(b)
		if err != nil || strings.ReplaceAll(show(again), "parameter ", "") != strings.ReplaceAll(show(v), "parameter ", "") {
			t.Errorf("%s: %v\n got %s\nwant %s", r.Name, err, show(again), show(v))
		}
	}
}

// Streams that no honest writer makes: each is an error, soon, and costs no memory.
func TestHostileStreams(t *testing.T) {
	long := func(s string, n int) string { return strings.Repeat(s, n) }
	// Each step doubles a tuple that holds the one before twice.
	bomb := "\x80\x02)" + long("q\x00h\x00\x86", 1) + long("2\x86", 60) + "."
	for name, s := range map[string]string{
		"empty":                    "",
		"no stop":                  "\x80\x02N",
		"nothing on the stack":     "\x80\x02.",
		"unknown opcode":           "\x80\x02\xff.",
		"newer protocol":           "\x80\x09N.",
		"four gigabytes of text":   "\x80\x02X\xff\xff\xff\xff.",
		"2^63 bytes":               "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
		"negative length":          "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
		"a frame beyond the end":   "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x00N.",
		"an integer of 255 bytes":  "\x80\x02\x8a\xff" + long("\x01", 255) + ".",
		"digits":                   "L" + long("9", 10000) + "L\n.",
		"marks":                    "\x80\x02" + long("(", 10000) + ".",
		"lists":                    "\x80\x02" + long("]", 10000) + long("a", 9999) + ".",
		"a memo that is not there": "\x80\x02h\x07.",
		"a memo number of 2^32":    "\x80\x02Nr\xff\xff\xff\xffj\xfe\xff\xff\xff.",
		"a pop too many":           "\x80\x020.",
		"setitem on a number":      "\x80\x02K\x01K\x02K\x03s.",
		"append to a tuple":        "\x80\x02)K\x01a.",
		"reduce of a number":       "\x80\x02K\x01)R.",
		"build":                    "\x80\x02]}b.",
		"a persistent id":          "\x80\x02K\x01Q.",
		"an extension":             "\x80\x02\x82\x01.",
		"inst":                     "(ios\nsystem\n.",
		"obj":                      "(cos\nsystem\nU\x04trueo.",
		"stack global":             "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
		"a class that is no class": "\x80\x02c\n\n.",
		"doubling":                 bomb,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := Load([]byte(s))
		runtime.ReadMemStats(&after)
		var class *UnsupportedClassError
		var format *FormatError
		if err == nil || !errors.As(err, &class) && !errors.As(err, &format) {
			t.Errorf("%s: %v, %v", name, show(v), err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d MiB were allocated", name, n>>20)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, r := range golden(f) {
		f.Add(r.Pickle)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Load(b)
		if err != nil {
			var class *UnsupportedClassError
			var format *FormatError
			if !errors.As(err, &class) && !errors.As(err, &format) {
				t.Fatalf("an error without a type: %v", err)
			}
			return
		}
		m, err := Marshal(v)
		if err != nil {
			return // bare storages and the like
		}
		if _, err := Load(m); err != nil {
			t.Fatalf("written but not read: %v", err)
		}
	})
}
