package schema

import "fmt"

// Error is a text that does not follow the schema.
type Error struct {
	Pointer string // JSON pointer of the place (RFC 6901), "" for the whole text
	Offset  int    // byte offset in the text
	Msg     string
}

// Error gives the place and the reason.
func (e *Error) Error() string {
	p := e.Pointer
	if p == "" {
		p = "/"
	}
	return fmt.Sprintf("schema: at %s (offset %d): %s", p, e.Offset, e.Msg)
}

// VersionError is a program of a schema version that this library does not read.
type VersionError struct {
	Have, Want SchemaVersion
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("schema: the program has schema version %d.%d, this library reads 1 to %d.%d: update the library or export the program again with a matching PyTorch",
		e.Have.Major, e.Have.Minor, e.Want.Major, e.Want.Minor)
}

// OpsetError is an operator set version other than the expected one.
type OpsetError struct {
	Name       string
	Have, Want int64 // Have is 0 if the program does not name the set
	Exact      bool  // the caller expected exactly Want
}

// Error names the operator set and both versions.
func (e *OpsetError) Error() string {
	if e.Exact {
		return fmt.Sprintf("schema: operator set %q has version %d in the program, the caller expects %d", e.Name, e.Have, e.Want)
	}
	return fmt.Sprintf("schema: operator set %q has version %d in the program, this library knows versions up to %d: update the library, or allow any version",
		e.Name, e.Have, e.Want)
}
