package schema

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// writer makes JSON text in the form that Python's json.dumps gives.
type writer struct {
	b   []byte
	err *Error
}

// fail notes a union without a value, or with one that its tag does not allow.
func (w *writer) fail(union string) {
	if w.err == nil {
		w.err = &Error{Offset: len(w.b), Msg: "a " + union + " has no valid value"}
	}
}

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

func (w *writer) boolean(v bool) {
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) int(v int64) { w.b = strconv.AppendInt(w.b, v, 10) }

// float writes Python's repr of v; what JSON lacks becomes a string.
func (w *writer) float(v float64) {
	switch {
	case math.IsNaN(v):
		w.raw(`"NaN"`)
	case math.IsInf(v, 1):
		w.raw(`"Infinity"`)
	case math.IsInf(v, -1):
		w.raw(`"-Infinity"`)
	default:
		w.b = appendFloat(w.b, v)
	}
}

// appendFloat writes a finite number as Python's repr does: positional between 1e-4 and 1e16, else with an exponent.
func appendFloat(b []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	n := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	for _, c := range b[n:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

const hexDigits = "0123456789abcdef"

func (w *writer) str(s string) {
	w.b = append(w.b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c <= '~' {
			if c == '"' || c == '\\' {
				w.b = append(w.b, '\\')
			}
			w.b = append(w.b, c)
			i++
			continue
		}
		c0, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch c0 {
		case '\n':
			w.raw(`\n`)
		case '\r':
			w.raw(`\r`)
		case '\t':
			w.raw(`\t`)
		case '\f':
			w.raw(`\f`)
		case '\b':
			w.raw(`\b`)
		default:
			if c0 >= 0x10000 {
				c0 -= 0x10000
				w.unicode(0xd800 + c0>>10)
				c0 = 0xdc00 + c0&0x3ff
			}
			w.unicode(c0)
		}
	}
	w.b = append(w.b, '"')
}

func (w *writer) unicode(c rune) {
	w.b = append(w.b, '\\', 'u', hexDigits[c>>12&15], hexDigits[c>>8&15], hexDigits[c>>4&15], hexDigits[c&15])
}
