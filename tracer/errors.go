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
