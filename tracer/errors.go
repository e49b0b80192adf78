package tracer

import "fmt"

// ErrorKind is the error_type of PyTorch's UserError.
type ErrorKind string

// The kinds.
const (
	InvalidInput        ErrorKind = "INVALID_INPUT"
	ConstraintViolation ErrorKind = "CONSTRAINT_VIOLATION"
	DynamicControlFlow  ErrorKind = "DYNAMIC_CONTROL_FLOW"
)

// UserError is a model or a specification that cannot be exported. Msg of a CONSTRAINT_VIOLATION ends with PyTorch's block of
// "Suggested fixes:".
type UserError struct {
	Kind  ErrorKind
	Msg   string
	Where string // the line of the user's code, "" if unknown
	Err   error  // the cause, if there is one
}

// Error gives the message and the place.
func (e *UserError) Error() string {
	s := "tracer: " + e.Msg
	if e.Where != "" {
		s += " (" + e.Where + ")"
	}
	return s
}

// Unwrap gives the cause.
func (e *UserError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) *UserError {
	return &UserError{Kind: InvalidInput, Msg: fmt.Sprintf(format, args...)}
}

// DataDependentError is a question that only data can answer, as GuardOnDataDependentSymNode of PyTorch.
type DataDependentError struct {
	Expr    string // such as "u0 > 2"
	Extract bool   // the number itself was wanted
	Where   string // the line of the user's code, "" if unknown
}

// Error gives PyTorch's message, with what to do in Go.
func (e *DataDependentError) Error() string {
	what := "guard on"
	if e.Extract {
		what = "extract specialized integer from"
	}
	s := fmt.Sprintf("Could not %s data-dependent expression %s (unhinted: %s).  (Size-like symbols: none)\n\n", what, e.Expr, e.Expr)
	if e.Extract {
		s += "consider handing the number on to operators as a symbolic.Int."
	} else {
		s += "consider using data-dependent friendly APIs such as tracer.GuardOrFalse, tracer.GuardOrTrue and tracer.StaticallyKnownTrue, or tracer.Check of what always holds before this line."
	}
	if e.Where != "" {
		s += "\nCaused by: (" + e.Where + ")"
	}
	return s
}
