package pytree

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// String prints as PyTorch does: TreeSpec(tuple, None, [*, *]), one child a line. The class that PyTorch prints for a named
// tuple is not in an archive; the registered name stands for it.
func (s *Spec) String() string {
	var b strings.Builder
	s.print(&b, "")
	return b.String()
}

func (s *Spec) print(b *strings.Builder, indent string) {
	if s.IsLeaf() {
		b.WriteByte('*')
		return
	}
	b.WriteString("TreeSpec(" + s.Type[strings.LastIndexByte(s.Type, '.')+1:] + ", " + s.contextText() + ", [")
	for i, c := range s.Children {
		if i > 0 {
			b.WriteString(",\n" + indent + "  ")
		}
		c.print(b, indent+"  ")
	}
	b.WriteString("])")
}

func (s *Spec) contextText() string {
	switch s.Type {
	case "collections.namedtuple":
		return "<class '" + s.className() + "'>"
	case "collections.defaultdict":
		var c struct {
			Name string `json:"default_factory_name"`
		}
		if json.Unmarshal(s.inner(), &c) == nil {
			return "[<class '" + c.Name + "'>, " + keyList(s.keys) + "]"
		}
	}
	if s.isMap() {
		return keyList(s.keys)
	}
	if len(s.Context) == 0 || string(s.Context) == "null" {
		return "None"
	}
	d := json.NewDecoder(strings.NewReader(string(s.inner())))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(s.inner())
	}
	return pyRepr(v)
}

// className is the registered name of a named tuple.
func (s *Spec) className() string {
	var name string
	if json.Unmarshal(s.Context, &name) == nil {
		return name
	}
	var old struct {
		Class string `json:"class_name"`
	}
	json.Unmarshal(s.Context, &old)
	return old.Class
}

func keyList(keys []Key) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		t := k.String()
		parts[i] = t[1 : len(t)-1]
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// pyRepr writes a decoded JSON value as Python's repr does; lists inside lists of keys are tuples in Python.
func pyRepr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return quote(v)
	case json.Number:
		return v.String()
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = pyRepr(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if fqn, ok := v["fqn"].(string); ok && v["__enum__"] == true {
			name, _ := v["name"].(string)
			return fqn[strings.LastIndexAny(fqn, ":.")+1:] + "." + name
		}
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// quote writes a Python string literal as repr does.
func quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b := []byte{q}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < 0x20 || r == 0x7f || (r == utf8.RuneError && n == 1):
			b = append(b, `\x`...)
			b = append(b, strconv.FormatUint(uint64(s[i])|0x100, 16)[1:]...)
		case r >= 0x80 && !unicode.IsPrint(r):
			b = append(b, strings.Trim(strconv.QuoteRuneToASCII(r), "'")...)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(append(b, q))
}
