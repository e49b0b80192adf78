package guards

import (
	"fmt"
	"strings"
)

// Value is a part of a guard and what it was in the call.
type Value struct {
	Source string // x.size()[0]
	Value  any    // int64, float64, bool, string, nil or *tensor.Tensor
}

// Error is a guard that a call violates.
type Error struct {
	Path   string // Python's path of the input, such as x or d['k'], the first one if the guard is about several
	Expr   string // the condition that does not hold, over Python's names of the inputs
	Values []Value
}

// Error is PyTorch's text, then the values seen.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("Guard failed: " + e.Expr)
	for i, v := range e.Values {
		if i == 0 {
			b.WriteString(", got ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(v.Source + " = " + pyRepr(v.Value))
	}
	return b.String()
}

// InputError is an input of another kind, rank or dtype than the program takes. Where a call is checked without guards it is
// also an input of the wrong size or value.
type InputError struct {
	Path string // *args[0].shape[1], as PyTorch names it in this place
	Want string // "equal to 4"
	Got  string
	text string // the message where it is not made of the others
}

// Error is PyTorch's text.
func (e *InputError) Error() string {
	if e.text != "" {
		return e.text
	}
	return fmt.Sprintf("Expected input at %s to be %s, but got %s", e.Path, e.Want, e.Got)
}

// CompileError is a guard or a range that is not understood.
type CompileError struct {
	What  string // "guard" or "range constraint"
	Index int    // in the program's list
	Text  string
	Err   error // with the place, such as a *symbolic.SyntaxError
}

// Error gives the text and the place.
func (e *CompileError) Error() string {
	return fmt.Sprintf("guards: %s %d (%s) is not understood: %v", e.What, e.Index, e.Text, e.Err)
}

// Unwrap gives the reason.
func (e *CompileError) Unwrap() error { return e.Err }
