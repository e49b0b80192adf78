package archive

import (
	"errors"
	"fmt"
)

// Kinds of errors, for errors.Is.
var (
	ErrNotPT2   = errors.New("not a PT2 archive")
	ErrFormat   = errors.New("malformed archive")
	ErrNotFound = errors.New("no such record")
	ErrLimit    = errors.New("limit exceeded")
	ErrChecksum = errors.New("checksum mismatch")
	ErrClosed   = errors.New("archive is closed")
)

// FormatError is a fault in the container.
type FormatError struct {
	Record string // "" for the container as a whole
	Offset int64
	Msg    string
	Kind   error
}

// Error names the record and the place.
func (e *FormatError) Error() string {
	if e.Record == "" {
		return fmt.Sprintf("archive: offset %d: %s", e.Offset, e.Msg)
	}
	return fmt.Sprintf("archive: record %q (offset %d): %s", e.Record, e.Offset, e.Msg)
}

// Unwrap gives the kind.
func (e *FormatError) Unwrap() error { return e.Kind }
