package loader

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/tensor"
)

const cpuMeta = `{"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "requires_grad": true, "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}`

// program returns x + w.
const program = `{"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "add"}}], ` +
	`"nodes": [{"target": "torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}, {"name": "other", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}], ` +
	`"outputs": [{"as_tensor": {"name": "add"}}], "metadata": {}, "is_hop_single_tensor_return": null, "name": "add"}], ` +
	`"tensor_values": {"p_w": ` + cpuMeta + `, "x": ` + cpuMeta + `, "add": ` + cpuMeta + `}, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, ` +
	`"custom_obj_values": {}, "sym_float_values": {}}, "signature": {"input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}, ` +
	`{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}}]}, ` +
	`"module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}}, "opset_version": {"aten": 10}, "range_constraints": {}, ` +
	`"schema_version": {"major": 8, "minor": 20}, "verifiers": ["ATEN"], "torch_version": "2.15.0", "guards_code": []}`

const config = `{"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": ` + cpuMeta + `}}}`

// build makes an archive of records; a name given twice takes the later contents, nil leaves the record out.
func build(t testing.TB, change map[string]string) []byte {
	t.Helper()
	records := map[string]string{
		"models/model.json": program, "data/weights/weight_0": string(make([]byte, 24)), "data/weights/model_weights_config.json": config,
		"data/constants/model_constants_config.json": `{"config": {}}`, "data/sample_inputs/model.pt": "",
	}
	for k, v := range change {
		records[k] = v
	}
	var b bytes.Buffer
	w := archive.NewWriter(&b, "")
	for k, v := range records {
		if v == "-" {
			continue
		}
		if err := w.WriteString(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoodArchive(t *testing.T) {
	c, err := OpenBytes(build(t, map[string]string{"extra/a/b.txt": "é"}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Program("")
	if err != nil || c.ExtraFiles["a/b.txt"] != "é" {
		t.Fatalf("%v %v", err, c.ExtraFiles)
	}
	if w, ok := p.StateDict().Get("w"); !ok || w.Numel() != 6 || p.Dialect() != "ATEN" {
		t.Errorf("weight %v", w)
	}
	if _, err := c.Program("other"); err == nil || !strings.Contains(err.Error(), "model") {
		t.Errorf("a missing name: %v", err)
	}
}

// TestBadArchives changes one thing each time. Every fault must give an error that says what it is.
func TestBadArchives(t *testing.T) {
	const models, configs = "models/model.json", "data/weights/model_weights_config.json"
	for _, c := range []struct{ name, record, old, new, want string }{
		{"dangling use", models, `"inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}`, `"inputs": [{"name": "self", "arg": {"as_tensor": {"name": "y"}}`, `"y" is used but nothing before it defines it`},
		{"cycle", models, `"inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}`, `"inputs": [{"name": "self", "arg": {"as_tensor": {"name": "add"}}`, `"add" is used but nothing before it defines it`},
		{"defined twice", models, `"outputs": [{"as_tensor": {"name": "add"}}], "metadata"`, `"outputs": [{"as_tensor": {"name": "x"}}], "metadata"`, `"x" is defined twice`},
		{"input twice", models, `{"inputs": [{"as_tensor": {"name": "p_w"}}`, `{"inputs": [{"as_tensor": {"name": "x"}}`, `"x" is defined twice`},
		{"output nowhere", models, `"outputs": [{"as_tensor": {"name": "add"}}], "nodes"`, `"outputs": [{"as_tensor": {"name": "mul"}}], "nodes"`, `"mul" is used`},
		{"too few specs", models, `, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]`, `]`, `the signature has 1 inputs, the graph 2`},
		{"other name", models, `{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}`, `{"user_input": {"arg": {"as_tensor": {"name": "z"}}}}`, `"z"`},
		{"no such weight", models, `"parameter_name": "w"`, `"parameter_name": "v"`, `"v" is not among`},
		{"bad expression", models, `"sizes": [{"as_int": 2}`, `"sizes": [{"as_expr": {"expr_str": "Add(", "hint": null}}`, `value`},
		{"sizes and strides", models, `"strides": [{"as_int": 3}, {"as_int": 1}]`, `"strides": [{"as_int": 1}]`, `2 sizes but 1 strides`},
		{"dialect", models, `["ATEN"]`, `["XYZ"]`, `ATEN or TRAINING`},
		{"opset", models, `{"aten": 10}`, `{"aten": 99}`, `version 99`},
		{"major", models, `"major": 8`, `"major": 9`, `schema version 9.20`},
		{"not functional", models, `torch.ops.aten.add.Tensor`, `torch.ops.aten.add_.Tensor`, `not functional`},
		{"no operator", models, `torch.ops.aten.add.Tensor`, `os.system`, `no operator`},
		{"json", models, `{"graph_module"`, `{graph_module`, `schema`},
		{"record missing", configs, `weight_0`, `weight_7`, `weight_7`},
		{"view too large", configs, `"sizes": [{"as_int": 2}`, `"sizes": [{"as_int": 3}`, `storage`},
		{"offset", configs, `"storage_offset": {"as_int": 0}`, `"storage_offset": {"as_int": 1}`, `storage`},
		{"negative offset", configs, `"storage_offset": {"as_int": 0}`, `"storage_offset": {"as_int": -1}`, `storage`},
		{"negative stride", configs, `"strides": [{"as_int": 3}`, `"strides": [{"as_int": -3}`, `stride`},
		{"overflow", configs, `"sizes": [{"as_int": 2}, {"as_int": 3}]`, `"sizes": [{"as_int": 4611686018427387904}, {"as_int": 4611686018427387904}]`, `size`},
		{"huge stride", configs, `"strides": [{"as_int": 3}`, `"strides": [{"as_int": 9223372036854775807}`, ``},
		{"odd bytes", configs, `"dtype": 7`, `"dtype": 11`, `multiple`},
		{"sparse", configs, `"layout": 7`, `"layout": 1`, `sparse`},
		{"pickled", configs, `"use_pickle": false`, `"use_pickle": true`, `weight_0`},
		{"no such dtype", configs, `"dtype": 7`, `"dtype": 0`, `dtype`},
	} {
		base := map[string]string{models: program, configs: config}[c.record]
		if !strings.Contains(base, c.old) {
			t.Fatalf("%s: nothing to replace", c.name)
		}
		_, err := OpenBytes(build(t, map[string]string{c.record: strings.Replace(base, c.old, c.new, 1)}), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTypedErrors(t *testing.T) {
	change := func(old, new string) []byte {
		return build(t, map[string]string{"models/model.json": strings.Replace(program, old, new, 1)})
	}
	var ve *schema.VersionError
	if _, err := OpenBytes(change(`"major": 8`, `"major": 9`), Options{}); !errors.As(err, &ve) || ve.Have.Major != 9 {
		t.Errorf("version: %v", err)
	}
	var oe *schema.OpsetError
	newer := change(`{"aten": 10}`, `{"aten": 11}`)
	if _, err := OpenBytes(newer, Options{}); !errors.As(err, &oe) || oe.Have != 11 || oe.Want != 10 || oe.Exact {
		t.Errorf("newer opset: %v", err)
	}
	if _, err := OpenBytes(newer, Options{AllowAnyOpset: true}); err != nil {
		t.Errorf("newer opset allowed: %v", err)
	}
	if _, err := OpenBytes(build(t, nil), Options{ExpectedOpset: map[string]int{"aten": 9}}); !errors.As(err, &oe) || oe.Have != 10 || oe.Want != 9 || !oe.Exact {
		t.Errorf("expected opset: %v", err)
	}
	if _, err := OpenBytes(change(`["ATEN"]`, `["XYZ"]`), Options{AllowAnyDialect: true}); err != nil {
		t.Errorf("any dialect: %v", err)
	}
	var pe *ProgramError
	if _, err := OpenBytes(change(`"name": "x"}}, "kind"`, `"name": "q"}}, "kind"`), Options{}); !errors.As(err, &pe) || !strings.Contains(pe.Where, "nodes[0] (add)") {
		t.Errorf("program: %v", err)
	}
	if _, err := OpenBytes(build(t, map[string]string{"archive_version": "1"}), Options{}); !errors.Is(err, archive.ErrFormat) {
		t.Errorf("archive version: %v", err)
	}
	if _, err := OpenBytes(build(t, map[string]string{"models/model.json": "-"}), Options{}); !errors.Is(err, archive.ErrNotPT2) {
		t.Errorf("no program: %v", err)
	}
}

func TestEmptyRecords(t *testing.T) {
	huge := strings.Replace(config, `"sizes": [{"as_int": 2}, {"as_int": 3}]`, `"sizes": [{"as_int": 1099511627776}, {"as_int": 3}]`, 1)
	c, err := OpenBytes(build(t, map[string]string{"data/weights/weight_0": "", "data/weights/model_weights_config.json": huge}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := c.Programs["model"].StateDict().Get("w")
	if len(w.Storage().Bytes()) > smallZeros || w.Numel() != 3<<40 {
		t.Errorf("%d bytes for %d elements", len(w.Storage().Bytes()), w.Numel())
	}
}

func TestSharing(t *testing.T) {
	entry := config[len(`{"config": {`) : len(config)-2]
	offset := strings.NewReplacer(`"w":`, `"v":`, `"sizes": [{"as_int": 2}, {"as_int": 3}]`, `"sizes": [{"as_int": 3}, {"as_int": 2}]`,
		`"strides": [{"as_int": 3}, {"as_int": 1}]`, `"strides": [{"as_int": 1}, {"as_int": 3}]`).Replace(entry)
	b := build(t, map[string]string{"data/weights/model_weights_config.json": `{"config": {` + entry + ", " + offset + `}}`})
	c, err := OpenBytes(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := c.Programs["model"].StateDict().Get("w")
	v, _ := c.Programs["model"].StateDict().Get("v")
	if w.Storage() != v.Storage() || v.Strides()[1] != 3 {
		t.Errorf("not shared: %v", v)
	}
}

func TestPackage(t *testing.T) {
	c, err := OpenBytes(build(t, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Programs["model"]
	path := filepath.Join(t.TempDir(), "two.v1.pt2")
	pkg := &Package{
		Programs: map[string]*export.Program{"a": p, "b": p}, ExtraFiles: map[string]string{"x.txt": "text"},
		AOTI: map[string][]File{"m": {{"m.wrapper.so", []byte("so")}}}, ExecuTorch: []File{{"m.pte", []byte("pte")}},
	}
	if err := PackagePT2File(path, pkg, SaveOptions{Opset: map[string]int{"mine": 3}}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path, Options{ExpectedOpset: map[string]int{"aten": 10, "mine": 3}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := fmt.Sprintln(d.Names(), d.ExtraFiles, d.AOTInductor, d.ExecuTorch, d.Archive().Root()); got !=
		"[a b] map[x.txt:text] [data/aotinductor/m/m.wrapper.so] [data/executorch/m.pte] two.v1/\n" {
		t.Error(got)
	}
	if d.Archive().Has("data/weights/weight_1") || d.Programs["a"].Parts().State.Len() != d.Programs["b"].Parts().State.Len() {
		t.Error("weights that two programs share are not written once")
	}
	var ae *export.ArgumentError
	if err := PackagePT2(&bytes.Buffer{}, &Package{}, SaveOptions{}); !errors.As(err, &ae) {
		t.Errorf("nothing packed: %v", err)
	}
	if err := PackagePT2(&bytes.Buffer{}, &Package{Programs: map[string]*export.Program{"a": nil}}, SaveOptions{}); !errors.As(err, &ae) {
		t.Errorf("nil packed: %v", err)
	}
	conj, _ := p.StateDict().Get("w")
	parts := p.Parts()
	parts.State = &export.OrderedMap[*tensor.Tensor]{}
	parts.State.Set("w", conj.WithBits(false, true))
	q, err := export.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(&bytes.Buffer{}, q, SaveOptions{}); err == nil || !strings.Contains(err.Error(), "negated") {
		t.Errorf("lazily negated: %v", err)
	}
}

func TestNotPT2(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "html": "<!DOCTYPE html>", "text": "hello", "elf": "\x7fELF"} {
		path := filepath.Join(t.TempDir(), "m.pt2")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Options{}); !IsNotPT2(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzOpen must never panic nor accept a program that cannot be printed and saved.
func FuzzOpen(f *testing.F) {
	f.Add(build(f, nil))
	n := 0
	golden.EachModel(f, "old-public", func(id string, model []byte) bool {
		if len(model) < 12_000 {
			f.Add(model)
			n++
		}
		return n < 12
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := OpenBytes(b, Options{Archive: archive.Options{SkipChecksums: true}})
		if err != nil {
			if strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
			return
		}
		for _, p := range c.Programs {
			_ = p.String()
			if err := Save(&bytes.Buffer{}, p, SaveOptions{}); err != nil {
				t.Logf("not saved: %v", err)
			}
		}
	})
}

// FuzzProgram does the same below the container: the program's JSON and the config of its weights.
func FuzzProgram(f *testing.F) {
	f.Add([]byte(program), []byte(config))
	f.Add([]byte(strings.Replace(program, `{"major": 8, "minor": 20}`, `2`, 1)), []byte(config))
	f.Fuzz(func(t *testing.T, model, weights []byte) {
		b := build(t, map[string]string{"models/model.json": string(model), "data/weights/model_weights_config.json": string(weights)})
		c, err := OpenBytes(b, Options{})
		if err != nil {
			if strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
			return
		}
		p := c.Programs["model"]
		_ = p.String()
		var out bytes.Buffer
		if err := Save(&out, p, SaveOptions{}); err != nil {
			return
		}
		if _, err := OpenBytes(out.Bytes(), Options{}); err != nil {
			t.Fatalf("saved but not loaded: %v", err)
		}
	})
}
