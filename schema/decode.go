package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Error is a program's JSON that cannot be understood.
type Error struct {
	Offset int64
	Msg    string
}

// Error gives the place.
func (e *Error) Error() string { return fmt.Sprintf("schema: offset %d: %s", e.Offset, e.Msg) }

// VersionError is a program of a schema or operator set that this library does not know.
type VersionError struct {
	What       string // "schema" or an opset's name
	Have, Want string
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("schema: the program has %s version %s, this library reads %s; update the library or export with an older PyTorch", e.What, e.Have, e.Want)
}

// maxJSONDepth bounds the nesting of a program's JSON.
const maxJSONDepth = 500

// Decode reads a program's JSON of any version since PyTorch 2.1.
func Decode(b []byte) (*ExportedProgram, error) {
	clean, err := sanitize(b)
	if err != nil {
		return nil, err
	}
	var p ExportedProgram
	if err := json.Unmarshal(clean, &p); err != nil {
		return nil, wrapJSON(err)
	}
	if p.Version.Major > Major {
		return nil, &VersionError{"schema", fmt.Sprintf("%d.%d", p.Version.Major, p.Version.Minor), fmt.Sprintf("up to %d.x", Major)}
	}
	if v := p.Opset["aten"]; v > AtenOpset {
		return nil, &VersionError{"aten opset", strconv.Itoa(v), "up to " + strconv.Itoa(AtenOpset)}
	}
	upgrade(&p)
	return &p, nil
}

// DecodePayloads reads a weights or constants config.
func DecodePayloads(b []byte) (*PayloadConfig, error) {
	clean, err := sanitize(b)
	if err != nil {
		return nil, err
	}
	var c PayloadConfig
	if err := json.Unmarshal(clean, &c); err != nil {
		return nil, wrapJSON(err)
	}
	return &c, nil
}

func wrapJSON(err error) error {
	switch e := err.(type) {
	case *json.SyntaxError:
		return &Error{e.Offset, e.Error()}
	case *json.UnmarshalTypeError:
		return &Error{e.Offset, fmt.Sprintf("field %s: a JSON %s where %v is wanted", e.Field, e.Value, e.Type)}
	}
	return &Error{0, err.Error()}
}

// sanitize quotes the bare Infinity, -Infinity and NaN of PyTorch 2.1 to 2.6, which are no JSON, and bounds nesting.
func sanitize(b []byte) ([]byte, error) {
	var out []byte
	last, depth := 0, 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return nil, &Error{int64(i), fmt.Sprintf("nested more than %d deep", maxJSONDepth)}
			}
		case '}', ']':
			depth--
		case '-', 'I', 'N':
			for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
				if bytes.HasPrefix(b[i:], []byte(word)) {
					out = append(append(append(append(out, b[last:i]...), '"'), word...), '"')
					i += len(word) - 1
					last = i + 1
					break
				}
			}
		}
	}
	if out == nil {
		return b, nil
	}
	return append(out, b[last:]...), nil
}

// Float is a JSON number, or one of the strings "Infinity", "-Infinity" and "NaN".
type Float float64

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"Infinity"`:
		*f = Float(math.Inf(1))
		return nil
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
		return nil
	case `"NaN"`:
		*f = Float(math.NaN())
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	*f = Float(v)
	return err
}

// Bound is an integer of a range; infinities of old files are unbounded.
type Bound struct {
	Value int64
	Inf   bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *Bound) UnmarshalJSON(b []byte) error {
	if i, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		v.Value = i
		v.Inf = i == math.MaxInt64 || i == math.MinInt64
		return nil
	}
	var f Float
	if err := f.UnmarshalJSON(b); err != nil {
		return err
	}
	v.Value, v.Inf = int64(f), math.Abs(float64(f)) >= 1<<62
	return nil
}

// Map is a JSON object with its order.
type Map[V any] struct {
	Keys   []string
	Values map[string]*V
}

// Get finds an entry, nil if there is none.
func (m *Map[V]) Get(key string) *V { return m.Values[key] }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Map[V]) UnmarshalJSON(b []byte) error {
	m.Values = map[string]*V{}
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want an object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		v := new(V)
		if err := d.Decode(v); err != nil {
			return err
		}
		if m.Values[key] == nil {
			m.Keys = append(m.Keys, key)
		}
		m.Values[key] = v
	}
	return nil
}

// UnmarshalJSON accepts the bare string of PyTorch 2.1 to 2.3.
func (t *TensorArgument) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.Name)
	}
	type plain TensorArgument
	return json.Unmarshal(b, (*plain)(t))
}

// UnmarshalJSON accepts the bare number that storage_offset was in PyTorch 2.1 and 2.2.
func (s *SymInt) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '{' {
		s.Int = new(int64)
		return json.Unmarshal(b, s.Int)
	}
	type plain SymInt
	return json.Unmarshal(b, (*plain)(s))
}

// UnmarshalJSON accepts the bare string of PyTorch 2.1.
func (s *SymExpr) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &s.Expr)
	}
	type plain SymExpr
	return json.Unmarshal(b, (*plain)(s))
}

// UnmarshalJSON accepts the bare number of PyTorch 2.1.
func (h *SymExprHint) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '{' {
		h.Int = new(int64)
		return json.Unmarshal(b, h.Int)
	}
	type plain SymExprHint
	return json.Unmarshal(b, (*plain)(h))
}

// UnmarshalJSON accepts the {"meta": ...} wrapper of PyTorch 2.1.
func (t *TensorMeta) UnmarshalJSON(b []byte) error {
	type plain TensorMeta
	var w struct {
		Meta *plain `json:"meta"`
		plain
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*t = TensorMeta(w.plain)
	if w.Meta != nil {
		*t = TensorMeta(*w.Meta)
	}
	return nil
}

// UnmarshalJSON accepts the bare number of PyTorch 2.1 and 2.2.
func (v *Version) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '{' {
		return json.Unmarshal(b, &v.Major)
	}
	type plain Version
	return json.Unmarshal(b, (*plain)(v))
}
