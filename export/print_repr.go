package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

func itoa(i int) string { return strconv.Itoa(i) }

// repr is Python's repr of an argument; user is the node that takes it.
func (f *flat) repr(arg Argument, user *fxNode) string {
	switch a := arg.(type) {
	case nil:
		return "None"
	case *Value:
		if a == nil {
			return "None"
		}
		if n := f.values[a]; n != nil {
			use(user, n)
			return n.name
		}
		return a.Name
	case []*Value:
		return reprList(f, a, user)
	case [][]*Value:
		return reprList(f, a, user)
	case []any:
		return reprList(f, a, user)
	case Tuple:
		parts := make([]string, len(a))
		for i, x := range a {
			parts[i] = f.repr(x, user)
		}
		return tuple(parts)
	case []bool:
		return reprList(f, a, user)
	case []int64:
		return reprList(f, a, user)
	case []float64:
		return reprList(f, a, user)
	case []string:
		return reprList(f, a, user)
	case [][]int64:
		return reprList(f, a, user)
	case [][]float64:
		return reprList(f, a, user)
	case bool:
		return pyBool(a)
	case int64:
		return strconv.FormatInt(a, 10)
	case float64:
		return pyFloat(a)
	case complex128:
		return pyComplex(a)
	case string:
		return pyString(a)
	case tensor.DType:
		return "torch." + a.String()
	case aten.MemoryFormat:
		return memoryFormatText(a)
	case aten.Layout:
		return layoutText(a)
	case aten.Device:
		return deviceText(a)
	case Operator:
		return string(a)
	case *Subgraph:
		n := f.add(&fxNode{name: a.Name, code: attribute(a.Name), metadata: user.metadata, attr: a})
		f.attrs[a] = n
		f.subgraphs = append(f.subgraphs, a)
		use(user, n)
		return n.name
	case *Dict:
		parts := make([]string, len(a.Keys))
		for i, k := range a.Keys {
			parts[i] = pyString(k) + ": " + f.repr(a.Values[i], user)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(arg)
}

func reprList[T any](f *flat, list []T, user *fxNode) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = f.repr(x, user)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

var identifier = regexp.MustCompile(`^[A-Za-z_][0-9A-Za-z_]*$`)

// attribute is the access to a submodule by its dotted name.
func attribute(name string) string {
	out := "self"
	for _, part := range strings.Split(name, ".") {
		if identifier.MatchString(part) {
			out += "." + part
		} else {
			out = `getattr(` + out + `, "` + part + `")`
		}
	}
	return out
}

// pyFloat is Python's repr of a float.
func pyFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pyComplex is the source text that PyTorch prints for a complex number: complex(re, im) where repr would lose a sign.
func pyComplex(c complex128) string {
	re, im := real(c), imag(c)
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	if re == 0 || im == 0 || !finite(re) || !finite(im) {
		return "complex(" + pyFloat(re) + ", " + pyFloat(im) + ")"
	}
	return complexText(c)
}

// complexText is Python's own text of a complex number, such as "(1+2j)" or "2j".
func complexText(c complex128) string {
	re, im := real(c), imag(c)
	part := func(v float64) string { return strings.TrimSuffix(pyFloat(v), ".0") }
	if re == 0 && !math.Signbit(re) {
		return part(im) + "j"
	}
	sign := "+"
	if math.Signbit(im) && !math.IsNaN(im) {
		sign = ""
	}
	return "(" + part(re) + sign + part(im) + "j)"
}

// pyString is Python's repr of a string.
func pyString(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b := []byte{quote}
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, r)
		case !strconv.IsPrint(r) && r <= 0xff:
			b = fmt.Appendf(b, `\x%02x`, r)
		case !strconv.IsPrint(r) && r <= 0xffff:
			b = fmt.Appendf(b, `\u%04x`, r)
		case !strconv.IsPrint(r):
			b = fmt.Appendf(b, `\U%08x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return string(append(b, quote))
}

func memoryFormatText(m aten.MemoryFormat) string {
	switch m {
	case aten.ContiguousFormat:
		return "torch.contiguous_format"
	case aten.ChannelsLast:
		return "torch.channels_last"
	case aten.ChannelsLast3d:
		return "torch.channels_last_3d"
	case aten.PreserveFormat:
		return "torch.preserve_format"
	}
	return "None"
}

func layoutText(l aten.Layout) string {
	names := [...]string{"unknown", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "strided"}
	if int(l) < len(names) {
		return "torch." + names[l]
	}
	return fmt.Sprintf("Layout(%d)", l)
}

func deviceText(d aten.Device) string {
	if d.Index < 0 {
		return "device(type='" + d.Type + "')"
	}
	return fmt.Sprintf("device(type='%s', index=%d)", d.Type, d.Index)
}

// shortTypes are PyTorch's abbreviations in annotations.
var shortTypes = map[tensor.DType]string{
	tensor.Uint8: "u8", tensor.Int8: "i8", tensor.Int16: "i16", tensor.Int32: "i32", tensor.Int64: "i64", tensor.Uint16: "u16",
	tensor.Uint32: "u32", tensor.Uint64: "u64", tensor.Float16: "f16", tensor.BFloat16: "bf16", tensor.Float32: "f32", tensor.Float64: "f64",
	tensor.Complex32: "c32", tensor.Complex64: "c64", tensor.Complex128: "c128", tensor.Bool: "b8", tensor.Float8E5M2: "f8e5m2",
	tensor.Float8E4M3FN: "f8e4m3fn", tensor.Float8E5M2FNUZ: "f8e5m2fnuz", tensor.Float8E4M3FNUZ: "f8e4m3fnuz", tensor.Float8E8M0FNU: "f8e8m0fnu",
}

// annotation is the type that is printed behind a name: a tensor's dtype and sizes, or a symbolic scalar's expression.
func annotation(v *Value) string {
	switch {
	case v.Tensor != nil:
		parts := make([]string, len(v.Tensor.Sizes))
		for i, s := range v.Tensor.Sizes {
			parts[i] = s.String()
		}
		return `: "` + shortTypes[v.Tensor.DType] + "[" + strings.Join(parts, ", ") + `]"`
	case v.Sym != nil:
		symbolic := false
		v.Sym.Symbols(func(string) { symbolic = true })
		if !symbolic {
			return ""
		}
		return `: "Sym(` + v.Sym.String() + `)"`
	}
	return ""
}

var frame = regexp.MustCompile(`^File "(.+)", line (\d+), in (.+)$`)

// summary is the comment above nodes that come from one place of the model's source.
func summary(metadata map[string]string) string {
	text := "# "
	if c := metadata["custom"]; c != "" {
		if d := customText(c); d != "{}" {
			text = "# Annotation: " + d + " "
		}
	}
	lines := strings.Split(strings.TrimSpace(metadata["stack_trace"]), "\n")
	for i := len(lines) - 2; i >= 0; i-- {
		if m := frame.FindStringSubmatch(strings.TrimSpace(lines[i])); m != nil {
			return text + "File: " + m[1] + ":" + m[2] + " in " + m[3] + ", code: " + strings.TrimSpace(lines[i+1])
		}
	}
	return text + "No stacktrace found for following nodes"
}

// customText prints a node's annotations as a Python dict, long values cut.
func customText(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := ordered(d)
	dict, ok := v.([]pair)
	if err != nil || !ok {
		return "{}"
	}
	parts := make([]string, len(dict))
	for i, e := range dict {
		value := pyJSON(e.value)
		plain := value
		if s, ok := e.value.(string); ok {
			plain = s
		}
		if r := []rune(plain); len(r) > 40 {
			value = pyString(string(r[:40]) + "...")
		}
		parts[i] = pyString(e.key) + ": " + value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

type pair struct {
	key   string
	value any
}

// ordered reads JSON and keeps the order of objects.
func ordered(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		out := []pair{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := ordered(d)
			if err != nil {
				return nil, err
			}
			key, _ := k.(string)
			out = append(out, pair{key, v})
		}
		_, err = d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := ordered(d)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = d.Token()
		return out, err
	}
	return t, nil
}

// pyJSON is Python's repr of a value that was JSON.
func pyJSON(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return pyBool(v)
	case json.Number:
		if !bytes.ContainsAny([]byte(v), ".eE") {
			return string(v)
		}
		f, _ := v.Float64()
		return pyFloat(f)
	case string:
		return pyString(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = pyJSON(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []pair:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = pyString(v[i].key) + ": " + pyJSON(v[i].value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}
