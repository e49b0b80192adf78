package schema

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// minimal is a program with one input that it returns.
const minimal = `{"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "x"}}], "nodes": [], ` +
	`"tensor_values": {"x": {"dtype": 7, "sizes": [{"as_int": 2}], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 1}], ` +
	`"storage_offset": {"as_int": 0}, "layout": 7}}, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, "custom_obj_values": {}, ` +
	`"sym_float_values": {}}, "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": ` +
	`[{"user_output": {"arg": {"as_tensor": {"name": "x"}}}}]}, "module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}}, ` +
	`"opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], ` +
	`"torch_version": "2.15.0", "guards_code": []}`

func TestMinimal(t *testing.T) {
	p, err := Decode([]byte(minimal), Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Encode(p); err != nil || string(out) != minimal {
		t.Errorf("%v: %s", err, firstDifference(out, []byte(minimal)))
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	text := strings.Replace(minimal, `"guards_code": []}`, `"guards_code": [], "later": {"a": [1, 2.50, "\u00e9"]}}`, 1)
	text = strings.Replace(text, `"layout": 7}`, `"layout": 7, "new/field": null}`, 1)
	p, err := Decode([]byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := Encode(p); string(out) != text {
		t.Error(firstDifference(out, []byte(text)))
	}
	if v, ok := p.Fields().Get("later"); !ok || !strings.Contains(string(v), "2.50") {
		t.Errorf("unknown field: %s %v", v, ok)
	}
	var e *Error
	if _, err := Decode([]byte(text), Options{Strict: true}); !errors.As(err, &e) || e.Pointer != "/graph_module/graph/tensor_values/x/new~1field" {
		t.Errorf("strict: %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, old, new, pointer, msg string }{
		{"missing field", `"strides": [{"as_int": 1}], `, ``, "/graph_module/graph/tensor_values/x", `no field "strides"`},
		{"unknown tag", `"inputs": [{"as_tensor"`, `"inputs": [{"as_tensot"`, "/graph_module/graph/inputs/0", `no tag "as_tensot"`},
		{"two tags", `"inputs": [{"as_tensor": {"name": "x"}}]`, `"inputs": [{"as_tensor": {"name": "x"}, "as_int": 3}]`, "/graph_module/graph/inputs/0", `two tags`},
		{"no tag", `"inputs": [{"as_tensor": {"name": "x"}}]`, `"inputs": [{}]`, "/graph_module/graph/inputs/0", `has no tag`},
		{"enum", `"dtype": 7`, `"dtype": 14`, "/graph_module/graph/tensor_values/x/dtype", `14 is no ScalarType`},
		{"type", `"requires_grad": false`, `"requires_grad": 0`, "/graph_module/graph/tensor_values/x/requires_grad", `want a boolean`},
		{"big int", `{"as_int": 2}`, `{"as_int": 9223372036854775808}`, "/graph_module/graph/tensor_values/x/sizes/0/as_int", `64 bits`},
		{"float for int", `{"as_int": 2}`, `{"as_int": 2.0}`, "/graph_module/graph/tensor_values/x/sizes/0/as_int", `no integer`},
		{"twice", `"dtype": 7`, `"dtype": 7, "dtype": 7`, "/graph_module/graph/tensor_values/x", `occurs twice`},
		{"key twice", `{"aten": 10}`, `{"aten": 10, "aten": 9}`, "/opset_version", `occurs twice`},
		{"cut", `"guards_code": []}`, `"guards_code": [`, "/guards_code", `has no end`},
		{"rest", `"guards_code": []}`, `"guards_code": []} x`, "", `behind the value`},
		{"comma", `"guards_code": []}`, `"guards_code": ["a",]}`, "/guards_code", `comma`},
		{"control", `["TRAINING"]`, "[\"TRA\nNING\"]", "/verifiers/0", `control character`},
		{"control after others", `["TRAINING"]`, "[\"\u00e9\x01\"]", "/verifiers/0", `control character`},
		{"control before escape", `["TRAINING"]`, "[\"\x01\\n\"]", "/verifiers/0", `control character`},
		{"utf8", `["TRAINING"]`, "[\"\xff\"]", "/verifiers/0", `UTF-8`},
		{"escape", `["TRAINING"]`, `["\x41"]`, "/verifiers/0", `escape`},
	} {
		if !strings.Contains(minimal, c.old) {
			t.Fatalf("%s: nothing to replace", c.name)
		}
		_, err := Decode([]byte(strings.Replace(minimal, c.old, c.new, 1)), Options{})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v", c.name, err)
		} else if e.Pointer != c.pointer || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%s: got %v, want %s at %s", c.name, err, c.msg, c.pointer)
		}
	}
}

func TestVersions(t *testing.T) {
	var ve *VersionError
	_, err := Decode([]byte(strings.Replace(minimal, `"major": 8`, `"major": 9`, 1)), Options{})
	if !errors.As(err, &ve) || ve.Have.Major != 9 || ve.Want.Major != 8 {
		t.Errorf("major 9: %v", err)
	}
	p, err := Decode([]byte(strings.Replace(minimal, `"minor": 20`, `"minor": 99`, 1)), Options{})
	if err != nil || p.SchemaVersion.Minor != 99 {
		t.Errorf("minor 99: %v", err)
	}
	var e *Error
	if _, err := Decode([]byte(`{"config": {}}`), Options{}); !errors.As(err, &e) {
		t.Errorf("no program: %v", err)
	}
	if _, err := Decode([]byte(minimal), Options{MaxBytes: 10}); err == nil {
		t.Error("MaxBytes does not hold")
	}
}

func TestDepth(t *testing.T) {
	deep := strings.Repeat(`{"as_string_to_argument": {"k": `, 1<<20)
	text := strings.Replace(minimal, `"inputs": [{"as_tensor": {"name": "x"}}]`, `"inputs": [`+deep, 1)
	if _, err := Decode([]byte(text), Options{}); err == nil || len(err.Error()) > 1<<20 {
		t.Errorf("got %.200v", err)
	}
}

func TestFloatText(t *testing.T) {
	// as Python's repr and json.dumps write them
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {0.1, "0.1"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"}, {1.5e-5, "1.5e-05"},
		{1e-4, "0.0001"}, {5e-324, "5e-324"}, {1e300, "1e+300"}, {1e22, "1e+22"}, {123456789012345680, "1.2345678901234568e+17"}, {-1.5, "-1.5"},
		{math.Inf(1), `"Infinity"`}, {math.Inf(-1), `"-Infinity"`}, {math.NaN(), `"NaN"`},
	} {
		w := &writer{}
		w.float(c.v)
		if string(w.b) != c.want {
			t.Errorf("%v: got %s, want %s", c.v, w.b, c.want)
		}
		r := newReader(w.b, false)
		if got := r.float(); r.err != nil || math.Float64bits(got) != math.Float64bits(c.v) && !math.IsNaN(c.v) {
			t.Errorf("%s: read %v, %v", w.b, got, r.err)
		}
	}
	for _, text := range []string{"NaN", "Infinity", "-Infinity", "3", "1e999", "-1E+2"} {
		r := newReader([]byte(text), false)
		if r.float(); r.err != nil || r.i != len(text) {
			t.Errorf("%s: %v", text, r.err)
		}
	}
}

func TestStringText(t *testing.T) {
	const text = `"a\"\\\n\r\t\f\b\u0001\u007f\u00e9\u4e2d\ud83d\ude00/"`
	r := newReader([]byte(text), false)
	s := r.str()
	if want := "a\"\\\n\r\t\f\b\x01\x7fé中😀/"; s != want || r.err != nil {
		t.Errorf("read %q, %v", s, r.err)
	}
	w := &writer{}
	if w.str(s); string(w.b) != text {
		t.Errorf("wrote %s, want %s", w.b, text)
	}
}

func TestTypes(t *testing.T) {
	n := 0
	for _, ty := range Types() {
		seen := map[int]bool{}
		for _, f := range ty.Fields {
			if seen[f.Number] {
				t.Errorf("%s: number %d twice", ty.Name, f.Number)
			}
			seen[f.Number] = true
			n++
		}
	}
	if len(Types()) != 51 || n != 171 {
		t.Errorf("%d types with %d fields", len(Types()), n)
	}
}

func TestEncodeRefusesWrongValues(t *testing.T) {
	p, err := Decode([]byte(minimal), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.GraphModule.Graph.Inputs[0] = Argument{Tag: AsInt, Value: "x"}
	if _, err := Encode(p); err == nil {
		t.Error("as_int with a string is written")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(strings.Replace(minimal, `{"major": 8, "minor": 20}`, "1", 1)))
	f.Add([]byte(strings.Replace(minimal, `"minor": 20`, `"minor": 2`, 1)))
	f.Add([]byte(`{"schema_version": {"major": 5, "minor": 1}, "graph_module": {"graph": {"nodes": [{"target": "torch.ops.higher_order.scan", "inputs": [{}, {}, {}, {}, {}, {}]}]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b, Options{})
		if err != nil {
			return
		}
		p.SchemaVersion = Current
		out, err := Encode(p)
		if err != nil {
			t.Fatalf("decoded but not encoded: %v", err)
		}
		q, err := Decode(out, Options{})
		if err != nil {
			t.Fatalf("encoded but not decoded: %v\n%s", err, out)
		}
		if again, err := Encode(q); err != nil || string(again) != string(out) {
			t.Fatalf("second round: %v\n%s\n%s", err, out, again)
		}
	})
}
