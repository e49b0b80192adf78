package aten

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/pt2go/pt2/tensor"
)

// Error is the refusal of an operator, worded like PyTorch's exception of the same kind.
type Error struct {
	Op   string // "aten.add.Tensor"
	Kind string // Python's exception: RuntimeError, IndexError, ValueError, TypeError, ...
	Msg  string
}

// Error gives the message, preceded by the operator.
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Kind + ": " + e.Msg
	}
	return fmt.Sprintf("aten: %s: %s: %s", e.Op, e.Kind, e.Msg)
}

// Fail refuses the operator's input with a RuntimeError.
func Fail(format string, args ...any) {
	panic(&Error{Kind: "RuntimeError", Msg: fmt.Sprintf(format, args...)})
}

// FailIndex refuses with an IndexError.
func FailIndex(format string, args ...any) {
	panic(&Error{Kind: "IndexError", Msg: fmt.Sprintf(format, args...)})
}

// FailValue refuses with a ValueError.
func FailValue(format string, args ...any) {
	panic(&Error{Kind: "ValueError", Msg: fmt.Sprintf(format, args...)})
}

// FailType refuses with a TypeError.
func FailType(format string, args ...any) {
	panic(&Error{Kind: "TypeError", Msg: fmt.Sprintf(format, args...)})
}

// FailAs refuses with any of Python's exceptions, such as NotImplementedError or LinAlgError.
func FailAs(kind, format string, args ...any) {
	panic(&Error{Kind: kind, Msg: fmt.Sprintf(format, args...)})
}

// Check refuses with a RuntimeError unless ok.
func Check(ok bool, format string, args ...any) {
	if !ok {
		Fail(format, args...)
	}
}

// InternalError is a broken invariant inside an operator: a fault of this library, with the stack where it happened.
type InternalError struct {
	Op    string
	Value any
	Stack []byte
}

// Error names the operator and what was recovered.
func (e *InternalError) Error() string {
	return fmt.Sprintf("aten: %s: internal error: %v", e.Op, e.Value)
}

// guard turns a panic below it into *err. It is deferred by every entry point of the package.
func guard(op *Op, err *error) {
	if r := recover(); r != nil {
		*err = RecoverError(op, r)
	}
}

// RecoverError makes an error of what was recovered while op ran: an *[Error] for a refusal, an *[InternalError] for a fault.
func RecoverError(op *Op, r any) (err error) {
	recovered(op, r, &err)
	return err
}

func recovered(op *Op, r any, err *error) {
	switch r := r.(type) {
	case *Error:
		if r.Op == "" && op != nil {
			r.Op = op.Name()
		}
		*err = r
	case *InternalError:
		*err = r
	case *CanceledError:
		*err = r
	case *DataError:
		*err = r
	case *LimitError:
		*err = r
	default:
		name := ""
		if op != nil {
			name = op.Name()
		}
		if e, ok := r.(error); ok && (errors.Is(e, tensor.ErrMemory) || errors.Is(e, tensor.ErrSize)) {
			*err = &Error{Kind: "RuntimeError", Op: name, Msg: e.Error()}
			return
		}
		*err = &InternalError{Op: name, Value: r, Stack: debug.Stack()}
	}
}
