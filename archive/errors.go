package archive

import (
	"errors"
	"fmt"
	"io/fs"
)

// Kinds of errors, for errors.Is. ErrNotFound is also fs.ErrNotExist, and ErrExist is fs.ErrExist.
var (
	ErrNotPT2   = errors.New("not a PT2 archive")
	ErrFormat   = errors.New("malformed archive")
	ErrNotFound = fmt.Errorf("no such record: %w", fs.ErrNotExist)
	ErrExist    = fmt.Errorf("the record was written already: %w", fs.ErrExist)
	ErrLimit    = errors.New("limit exceeded")
	ErrChecksum = errors.New("checksum mismatch")
	ErrClosed   = errors.New("archive is closed")
)

// FormatError is a fault in the container.
type FormatError struct {
	Record string // "" for the container as a whole
	Offset int64  // where in the file
	Msg    string
	Kind   error // one of the kinds above
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

// NameError is a record name that a [Writer] refuses because it would not stay inside a folder when extracted. It is of
// kind fs.ErrInvalid.
type NameError struct {
	Name, Reason string
}

// Error names the record and the reason.
func (e *NameError) Error() string {
	return fmt.Sprintf("archive: record name %q: %s; want a relative path with slashes", e.Name, e.Reason)
}

// Unwrap gives fs.ErrInvalid.
func (e *NameError) Unwrap() error { return fs.ErrInvalid }
