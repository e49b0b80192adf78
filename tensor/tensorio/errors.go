package tensorio

import "fmt"

// Error is a file that cannot be read, or a value that has no form in the file. Faults of a zip container are *archive.FormatError.
type Error struct{ err error }

// Error says what and where.
func (e *Error) Error() string { return "tensorio: " + e.err.Error() }

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.err }

func errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }
