package interp

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// MetaError is a value that differs from what the archive records of it.
type MetaError struct {
	Value     string
	What      string // "dtype", "sizes" or "strides"
	Got, Want string
}

// Error names the value.
func (e *MetaError) Error() string {
	return fmt.Sprintf("interp: value %s has %s %s, the archive records %s", e.Value, e.What, e.Got, e.Want)
}

func (m *metaChecker) check(v *export.Value, x any) error {
	if v.Kind == export.SymIntKind {
		if n, ok := x.(int64); ok && v.Sym != nil && v.Sym.Op == symbolic.OpSymbol {
			if _, known := m.syms[v.Sym.Name]; !known {
				m.syms[v.Sym.Name] = n
			}
		}
		return nil
	}
	t, ok := x.(*aten.Value)
	if !ok || t == nil || v.Tensor == nil {
		return nil
	}
	if t.DType != v.Tensor.DType {
		return &MetaError{v.Name, "dtype", t.DType.String(), v.Tensor.DType.String()}
	}
	if !m.sameAll(v.Tensor.Sizes, t.Sizes, nil) {
		return &MetaError{v.Name, "sizes", fmt.Sprint(t.Sizes), fmt.Sprint(v.Tensor.Sizes)}
	}
	if !m.sameAll(v.Tensor.Strides, t.Strides, t.Sizes) {
		return &MetaError{v.Name, "strides", fmt.Sprint(t.Strides), fmt.Sprint(v.Tensor.Strides)}
	}
	return nil
}

// sameAll compares; strides of dimensions of size 1, and all strides of empty tensors, do not count.
func (m *metaChecker) sameAll(want, got, sizes []symbolic.Int) bool {
	if len(want) != len(got) {
		return false
	}
	for _, s := range sizes {
		if s.Int64() == 0 {
			return true
		}
	}
	for i := range want {
		if sizes != nil && sizes[i].Int64() == 1 {
			continue
		}
		if !m.same(want[i], got[i].Int64()) {
			return false
		}
	}
	return true
}
