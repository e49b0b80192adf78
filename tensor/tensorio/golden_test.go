package tensorio

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/internal/pickle"
	"github.com/pt2go/pt2/tensor"
)

// bools is 0..5 as bool, others are 0..5 itself.
func holds(t *testing.T, name string, v any) {
	t.Helper()
	x, ok := v.(*tensor.Tensor)
	if !ok {
		t.Errorf("%s is a %T", name, v)
		return
	}
	if x.DType().String() != name || !reflect.DeepEqual(x.Sizes(), []int64{2, 3}) {
		t.Errorf("%s is a %v of %v", name, x.DType(), x.Sizes())
	}
	for i := range int64(6) {
		want := float64(i)
		if x.DType() == tensor.Bool {
			want = min(want, 1)
		}
		if got := x.Float(i); got != want {
			t.Errorf("%s[%d] is %v, want %v", name, i, got, want)
		}
	}
}

// The files of testdata were made by NumPy, safetensors and PyTorch.
func TestFilesOfOthers(t *testing.T) {
	for file, n := range map[string]int{"numpy.npz": 14, "compressed.npz": 14, "torch.safetensors": 15, "torch.pt": 17} {
		v, err := Load(filepath.Join("testdata", file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		d, ok := v.(*Dict)
		if !ok || len(d.Keys) != n {
			t.Errorf("%s holds %T %v", file, v, d)
			continue
		}
		for i, k := range d.Keys {
			switch name := k.(string); name {
			case "views":
				for _, x := range d.Values[i].([]any) {
					if x := x.(*tensor.Tensor); x.Storage() != d.Values[i].([]any)[0].(*tensor.Tensor).Storage() || x.Float(0) != 2 && x.Float(1) != 3 {
						t.Errorf("view %v", x)
					}
				}
			case "tuple":
				if !reflect.DeepEqual(d.Values[i], Tuple{int64(1), nil, "é"}) {
					t.Errorf("tuple %v", d.Values[i])
				}
			default:
				holds(t, name, d.Values[i])
			}
		}
	}
	for _, file := range []string{"fortran.npy", "version3.npy"} {
		v, err := Load(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		holds(t, "float32", v)
	}
	if v, err := Load("testdata/scalar.npy"); err != nil || v.(*tensor.Tensor).Dim() != 0 || v.(*tensor.Tensor).Float(0) != 5 {
		t.Errorf("scalar: %v %v", v, err)
	}
}

// Each form writes what it reads, in every dtype that it has, row by row whatever the strides.
func TestEveryFormRoundTrips(t *testing.T) {
	src, err := Load("testdata/torch.pt")
	if err != nil {
		t.Fatal(err)
	}
	d := src.(*Dict)
	missing := map[string]map[string]bool{
		".npy": {"bfloat16": true, "float8_e4m3fn": true, "float8_e5m2": true}, ".npz": {"bfloat16": true, "float8_e4m3fn": true, "float8_e5m2": true},
		".json": {"float8_e4m3fn": true, "float8_e5m2": true},
	}
	for i, k := range d.Keys {
		x, ok := d.Values[i].(*tensor.Tensor)
		if !ok {
			continue
		}
		tr, err := x.AsStrided([]int64{3, 2}, []int64{1, 3}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, ext := range []string{".npy", ".npz", ".safetensors", ".pt", ".json"} {
			path := filepath.Join(t.TempDir(), "x"+ext)
			var v any = &Dict{Keys: []any{"t"}, Values: []any{tr}}
			switch ext {
			case ".npy":
				v = tr
			case ".json":
				v = []any{tr}
			}
			err := Save(path, v)
			if missing[ext][k.(string)] && ext != ".json" {
				if err == nil {
					t.Errorf("%v was written as %s", k, ext)
				}
				continue
			}
			if err != nil {
				t.Errorf("%v%s: %v", k, ext, err)
				continue
			}
			back, err := Load(path)
			if missing[ext][k.(string)] {
				if err == nil {
					t.Errorf("%v was read from %s", k, ext)
				}
				continue
			}
			switch b := back.(type) {
			case *Dict:
				back = b.Values[0]
			case []any:
				back = b[0]
			}
			got, ok := back.(*tensor.Tensor)
			if err != nil || !ok || got.DType() != x.DType() || !reflect.DeepEqual(got.Sizes(), []int64{3, 2}) || got.Float(1) != tr.Float(1) || got.Float(4) != tr.Float(4) {
				t.Errorf("%v%s came back as %v %v", k, ext, back, err)
			}
		}
	}
}

func TestLazyBitsAreRefused(t *testing.T) {
	x := tensor.New(tensor.Float32, 2).WithBits(false, true)
	if b, err := EncodeNPY(x); err == nil {
		t.Errorf("a lazily negated tensor was written as it lies: %x", b)
	}
	if _, err := EncodeSafetensors(&Dict{Keys: []any{"x"}, Values: []any{x}}); err == nil {
		t.Error("a lazily negated tensor was written as it lies")
	}
}

// typed reports an error that callers can tell apart.
func typed(err error) bool {
	var own *Error
	var zip *archive.FormatError
	var class *pickle.UnsupportedClassError
	var stream *pickle.FormatError
	return errors.As(err, &own) || errors.As(err, &zip) || errors.As(err, &class) || errors.As(err, &stream)
}

func TestWrongFiles(t *testing.T) {
	for path, text := range map[string]string{
		"x.npy": "\x93NUMPY\x01\x00\x10\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "y.npy": "no", "z.npz": "PK",
		"a.safetensors": "\xff\xff\xff\xff\xff\xff\xff\x7f{}", "b.safetensors": "\x40\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}         `,
		"c.safetensors": "short", "d.json": `[{"dtype": "float32", "shape": [9223372036854775807, 2], "data": []}]`, "e.json": "{}", "f.pt": "text", "g.bin": "",
		"h.json": `[[[1], [1, 2]]]`, "i.json": `[[1, "x"]]`, "j.json": `[{"dtype": "uint64", "shape": [1], "data": [-1]}]`,
	} {
		file := filepath.Join(t.TempDir(), path)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if v, err := Load(file); err == nil || !typed(err) {
			t.Errorf("%s was read as %v, %T %v", path, v, err, err)
		}
	}
	for _, c := range []struct {
		path string
		v    any
	}{{"x.npy", 3}, {"x.npz", []any{}}, {"x.safetensors", &Dict{Keys: []any{"a"}, Values: []any{1}}}, {"x.what", nil}, {"x.pt", map[string]any{}}} {
		if err := Save(filepath.Join(t.TempDir(), c.path), c.v); err == nil {
			t.Errorf("%T was written as %s", c.v, c.path)
		}
	}
}

func FuzzParse(f *testing.F) {
	kinds := []func([]byte) (any, error){
		ParsePT,
		func(b []byte) (any, error) { return ParseNPY(b) },
		func(b []byte) (any, error) { return ParseNPZ(b) },
		func(b []byte) (any, error) { return ParseSafetensors(b) },
		ParseJSON,
	}
	for file, kind := range map[string]byte{"torch.pt": 0, "fortran.npy": 1, "version3.npy": 1, "compressed.npz": 2, "torch.safetensors": 3} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, b)
	}
	f.Add(byte(4), []byte(`[[1, 2.5], {"dtype": "int8", "shape": [1], "data": [3]}, "x", null]`))
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		k := int(kind) % len(kinds)
		v, err := kinds[k](b)
		if err != nil {
			if !typed(err) {
				t.Fatalf("an error without a type: %T %v", err, err)
			}
			return
		}
		var out []byte
		switch x := v.(type) {
		case *tensor.Tensor:
			if x == nil {
				t.Fatal("nil without an error")
			}
			_ = x.String()
			out, err = EncodeNPY(x)
		case *Dict:
			switch k {
			case 2:
				out, err = EncodeNPZ(x)
			case 3:
				out, err = EncodeSafetensors(x)
			}
		}
		if k == 0 {
			var w bytes.Buffer
			err = WritePT(&w, v)
			out = w.Bytes()
		}
		if err != nil || out == nil {
			return
		}
		if _, err := kinds[k](out); err != nil {
			t.Fatalf("written but not read: %v", err)
		}
	})
}
