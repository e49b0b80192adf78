package schema

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a text. Real programs stay below 60.
const maxDepth = 1000

// reader reads JSON as Python's json module does: bare NaN, Infinity and -Infinity are numbers. The first error sticks, and
// whoever descends adds its part of the path on the way back.
type reader struct {
	b      []byte
	i      int
	depth  int
	err    *Error
	strict bool
	seen   map[string]string // strings already made, to share them
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: r.i, Msg: fmt.Sprintf(format, args...)}
	}
}

// under adds a path segment to an error and reports whether there is one.
func (r *reader) under(seg string) bool {
	if r.err == nil {
		return false
	}
	seg = strings.ReplaceAll(strings.ReplaceAll(seg, "~", "~0"), "/", "~1")
	r.err.Pointer = "/" + seg + r.err.Pointer
	return true
}

func (r *reader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\n', '\t', '\r':
			r.i++
		default:
			return
		}
	}
}

// next skips space and shows the next byte, 0 at the end.
func (r *reader) next() byte {
	if r.i < len(r.b) && r.b[r.i] > ' ' {
		return r.b[r.i]
	}
	r.space()
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

// what describes the next token for messages.
func (r *reader) what() string {
	switch c := r.next(); {
	case r.i >= len(r.b):
		return "the end of the text"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == 't' || c == 'f':
		return "a boolean"
	case c == 'n':
		return "null"
	case c == '-' || c >= '0' && c <= '9' || c == 'N' || c == 'I':
		return "a number"
	default:
		return strconv.QuoteRune(rune(c))
	}
}

func (r *reader) expect(c byte) bool {
	if r.err != nil {
		return false
	}
	if r.next() != c {
		r.fail("got %s, want %q", r.what(), string(c))
		return false
	}
	r.i++
	return true
}

func (r *reader) enter(c byte) bool {
	if !r.expect(c) {
		return false
	}
	if r.depth++; r.depth > maxDepth {
		r.fail("nested deeper than %d levels", maxDepth)
		return false
	}
	return true
}

// more steps to the next element of an object or array; it is false behind the last one.
func (r *reader) more(first *bool, end byte) bool {
	if r.err != nil {
		return false
	}
	c := r.next()
	if c == end {
		r.i++
		r.depth--
		return false
	}
	if *first {
		*first = false
		return true
	}
	if c != ',' {
		r.fail("got %s, want a comma or %q", r.what(), string(end))
		return false
	}
	r.i++
	if r.next() == end {
		r.fail("a comma before %q", string(end))
		return false
	}
	return true
}

// key reads a member's name and the colon.
func (r *reader) key() []byte {
	k := r.rawString()
	if r.expect(':') {
		return k
	}
	return nil
}

// null consumes null if it comes next.
func (r *reader) null() bool {
	if r.err == nil && r.next() == 'n' {
		return r.word("null")
	}
	return false
}

func (r *reader) word(w string) bool {
	if r.i+len(w) <= len(r.b) && string(r.b[r.i:r.i+len(w)]) == w {
		r.i += len(w)
		return true
	}
	r.fail("got %s, want %s", r.what(), w)
	return false
}

func (r *reader) boolean() bool {
	if r.err != nil {
		return false
	}
	switch r.next() {
	case 't':
		return r.word("true")
	case 'f':
		r.word("false")
		return false
	}
	r.fail("got %s, want a boolean", r.what())
	return false
}

// number gives the text of a number, the words for non-finite ones included.
func (r *reader) number() []byte {
	if r.err != nil {
		return nil
	}
	r.space()
	start := r.i
	i := r.i
	if i < len(r.b) && r.b[i] == '-' {
		i++
	}
	if i < len(r.b) && (r.b[i] == 'I' || r.b[i] == 'N') {
		r.i = i
		w := "Infinity"
		if r.b[i] == 'N' && i == start {
			w = "NaN"
		}
		r.word(w)
		return r.b[start:r.i]
	}
	digits := i
	for i < len(r.b) && (r.b[i] >= '0' && r.b[i] <= '9' || r.b[i] == '.' || r.b[i] == 'e' || r.b[i] == 'E' || r.b[i] == '+' || r.b[i] == '-') {
		i++
	}
	t := r.b[digits:i]
	if len(t) == 0 || t[0] < '0' || t[0] > '9' || len(t) > 1 && t[0] == '0' && t[1] >= '0' && t[1] <= '9' {
		r.fail("got %s, want a number", r.what())
		return nil
	}
	r.i = i
	return r.b[start:i]
}

func (r *reader) int() int64 {
	t := r.number()
	if r.err != nil {
		return 0
	}
	if len(t) < 18 { // the common case without an allocation
		neg, v, ok := false, int64(0), true
		for j, c := range t {
			switch {
			case j == 0 && c == '-':
				neg = true
			case c >= '0' && c <= '9':
				v = v*10 + int64(c-'0')
			default:
				ok = false
			}
		}
		if ok && neg {
			return -v
		} else if ok {
			return v
		}
	}
	v, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil {
		r.fail("%s is no integer of 64 bits", t)
	}
	return v
}

func (r *reader) float() float64 {
	if r.err != nil {
		return 0
	}
	var t []byte
	if r.next() == '"' {
		t = r.rawString()
		switch string(t) {
		case "Infinity", "-Infinity", "NaN":
		default:
			r.fail(`%q is no number; the strings "Infinity", "-Infinity" and "NaN" are`, t)
			return 0
		}
	} else {
		t = r.number()
	}
	switch string(t) {
	case "Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	case "NaN":
		return math.NaN()
	}
	v, err := strconv.ParseFloat(string(t), 64)
	if err != nil && r.err == nil && !math.IsInf(v, 0) { // Python too reads 1e999 as infinity
		r.fail("%s is no number", t)
	}
	return v
}

// str reads a string and shares equal ones.
func (r *reader) str() string {
	t := r.rawString()
	if s, ok := r.seen[string(t)]; ok {
		return s
	}
	s := string(t)
	if len(s) <= 4096 {
		r.seen[s] = s
	}
	return s
}

// rawString reads a string; the result may point into the text.
func (r *reader) rawString() []byte {
	if !r.expect('"') {
		return nil
	}
	start := r.i
	n := bytes.IndexByte(r.b[start:], '"')
	if n < 0 {
		r.i = len(r.b)
		r.fail("a string has no end")
		return nil
	}
	t := r.b[start : start+n]
	if bs := bytes.IndexByte(t, '\\'); bs >= 0 {
		r.i += bs
		return r.escaped(start)
	}
	r.i += n + 1
	ascii := true
	for _, c := range t {
		if c < ' ' {
			r.fail("a control character in a string")
			return nil
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if !ascii && !utf8.Valid(t) {
		r.fail("a string is not valid UTF-8")
		return nil
	}
	return t
}

// escaped reads the rest of a string from its first backslash on.
func (r *reader) escaped(start int) []byte {
	for _, c := range r.b[start:r.i] {
		if c < ' ' {
			r.fail("a control character in a string")
			return nil
		}
	}
	out := append(make([]byte, 0, 2*(r.i-start)+16), r.b[start:r.i]...)
	for r.i < len(r.b) {
		c := r.b[r.i]
		switch {
		case c == '"':
			r.i++
			if !utf8.Valid(out) {
				r.fail("a string is not valid UTF-8")
				return nil
			}
			return out
		case c < ' ':
			r.fail("a control character in a string")
			return nil
		case c != '\\':
			out = append(out, c)
			r.i++
			continue
		}
		if r.i+1 >= len(r.b) {
			break
		}
		e := r.b[r.i+1]
		r.i += 2
		switch e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			c := r.hex4()
			if utf16.IsSurrogate(c) && r.i+1 < len(r.b) && r.b[r.i] == '\\' && r.b[r.i+1] == 'u' {
				at := r.i
				r.i += 2
				if pair := utf16.DecodeRune(c, r.hex4()); pair != utf8.RuneError {
					c = pair
				} else {
					r.i = at
				}
			}
			if r.err != nil {
				return nil
			}
			out = utf8.AppendRune(out, c)
		default:
			r.fail("a string has the unknown escape %q", "\\"+string(rune(e)))
			return nil
		}
	}
	r.fail("a string has no end")
	return nil
}

func (r *reader) hex4() rune {
	if r.i+4 <= len(r.b) {
		if v, err := strconv.ParseUint(string(r.b[r.i:r.i+4]), 16, 32); err == nil {
			r.i += 4
			return rune(v)
		}
	}
	r.fail("a \\u escape needs four hexadecimal digits")
	return 0
}

// skip passes over any value and gives its text.
func (r *reader) skip() []byte {
	r.space()
	start := r.i
	r.pass()
	if r.err != nil {
		return nil
	}
	return r.b[start:r.i]
}

func (r *reader) pass() {
	first := true
	switch r.next() {
	case '{':
		if r.enter('{') {
			for r.more(&first, '}') {
				k := r.key()
				if r.pass(); r.under(string(k)) {
					return
				}
			}
		}
	case '[':
		if r.enter('[') {
			for n := 0; r.more(&first, ']'); n++ {
				if r.pass(); r.under(strconv.Itoa(n)) {
					return
				}
			}
		}
	case '"':
		r.passString()
	case 't', 'f':
		r.boolean()
	case 'n':
		r.null()
	default:
		r.float()
	}
}

// leap passes over a value without looking at its syntax: it only follows strings and brackets. Whoever uses it decodes the text
// afterwards, which finds the faults.
func (r *reader) leap() {
	if c := r.next(); c != '{' && c != '[' {
		r.pass()
		return
	}
	for depth := 0; r.err == nil && r.i < len(r.b); {
		switch r.b[r.i] {
		case '"':
			r.passString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if r.i++; depth == 0 {
			return
		}
	}
	r.fail("an object or array has no end")
}

// passString passes over a string without decoding it.
func (r *reader) passString() {
	r.i++
	for r.i < len(r.b) {
		n := bytes.IndexByte(r.b[r.i:], '"')
		if n < 0 {
			break
		}
		r.i += n + 1
		back := 0
		for j := r.i - 2; j >= 0 && r.b[j] == '\\'; j-- {
			back++
		}
		if back%2 == 0 {
			return
		}
	}
	r.i = len(r.b)
	r.fail("a string has no end")
}

// end checks that nothing follows.
func (r *reader) end() {
	if r.err == nil && (r.next() != 0 || r.i < len(r.b)) {
		r.fail("got %s behind the value", r.what())
	}
}

func newReader(b []byte, strict bool) *reader {
	return &reader{b: b, strict: strict, seen: make(map[string]string, min(1024, len(b)/64))}
}
