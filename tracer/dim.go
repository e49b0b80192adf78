package tracer

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// DimSpec says what one dimension of an example may become: a [*Dim], a [Hint] such as [Auto], or a [Size]. Nil fixes it to the
// example's size.
type DimSpec interface{ dimSpec() }

// Size fixes a dimension to this size, which must be the example's.
type Size int64

func (Size) dimSpec() {}

// Dim is a named size that exported programs take any value for, within bounds; or a linear function of one.
type Dim struct {
	name     string
	min, max int64
	root     *Dim // of a derived Dim, which is a*root + b
	a, b     int64
	err      error
}

func (*Dim) dimSpec() {}

// DimOption bounds a [Dim].
type DimOption func(*Dim)

// Min is the smallest size; the default is 0.
func Min(n int64) DimOption { return func(d *Dim) { d.min = n } }

// Max is the largest size; the default is none.
func Max(n int64) DimOption { return func(d *Dim) { d.max = n } }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewDim makes a Dim. The name must be an identifier, and max larger than min.
func NewDim(name string, opts ...DimOption) (*Dim, error) {
	d := &Dim{name: name, max: math.MaxInt64, a: 1}
	for _, o := range opts {
		o(d)
	}
	if !identifier.MatchString(name) {
		return nil, &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Dim name must be a valid identifier, got %s", name)}
	}
	if d.max <= d.min {
		return nil, &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Cannot create Dim with inconsistent min=%d, max=%d", d.min, d.max)}
	}
	return d, nil
}

// MustDim is [NewDim] that panics.
func MustDim(name string, opts ...DimOption) *Dim {
	d, err := NewDim(name, opts...)
	if err != nil {
		panic(err)
	}
	return d
}

// Dims makes several with the same bounds.
func Dims(names []string, opts ...DimOption) ([]*Dim, error) {
	out := make([]*Dim, len(names))
	for i, n := range names {
		d, err := NewDim(n, opts...)
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

// Add is d + n, for sizes that are always so much larger than others. What cannot be is an error of [Export]; see [Dim.Err].
func (d *Dim) Add(n int64) *Dim { return d.derive(d.a, d.b+n) }

// Sub is d - n.
func (d *Dim) Sub(n int64) *Dim { return d.derive(d.a, d.b-n) }

// Mul is n*d, for sizes that are always multiples of others. n must be positive.
func (d *Dim) Mul(n int64) *Dim {
	out := d.derive(d.a*n, d.b*n)
	if n <= 0 && out.err == nil {
		out.err = &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Attempted to multiply %s with %d, where a positive integer was expected. "+
			"(Only increasing linear operations with integer coefficients are supported.)", d.name, n)}
	}
	return out
}

func (d *Dim) derive(a, b int64) *Dim {
	root := d.top()
	out := &Dim{root: root, a: a, b: b, err: d.err}
	switch {
	case a == 1 && b == 0:
		out.name = root.name
	case b == 0:
		out.name = fmt.Sprintf("%d*%s", a, root.name)
	default:
		out.name = root.name
		if a != 1 {
			out.name = fmt.Sprintf("%d*%s", a, root.name)
		}
		if b > 0 {
			out.name += fmt.Sprintf(" + %d", b)
		} else {
			out.name += fmt.Sprintf(" - %d", -b)
		}
	}
	image := func(v int64) int64 {
		if v == math.MaxInt64 || a > 0 && v > (math.MaxInt64-max(b, 0))/a {
			return math.MaxInt64
		}
		return a*v + b
	}
	out.min, out.max = image(root.min), image(root.max)
	if out.min < 0 && out.err == nil {
		out.err = &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Expected derived min value of %s to be >= 0. Please specify an appropriate min value for %s (currently %d).",
			out.name, root.name, root.min)}
	}
	return out
}

// top is the Dim that d is a function of.
func (d *Dim) top() *Dim {
	if d.root != nil {
		return d.root
	}
	return d
}

// Err tells why a derived Dim cannot be.
func (d *Dim) Err() error { return d.err }

// Name is the Dim's name, or its formula.
func (d *Dim) Name() string { return d.name }

// Bounds gives the smallest and largest size.
func (d *Dim) Bounds() (min, max int64) { return d.min, d.max }

// String is PyTorch's text, such as "Dim('b', min=3, max=9)"; a min of 2 is not printed, a min of 0 is.
func (d *Dim) String() string {
	if d.root != nil {
		return d.name
	}
	return dimText(d.name, d.min, d.max)
}

func dimText(name string, lo, hi int64) string {
	s := "Dim('" + name + "'"
	if lo != 2 {
		s += fmt.Sprintf(", min=%d", lo)
	}
	if hi != math.MaxInt64 {
		s += fmt.Sprintf(", max=%d", hi)
	}
	return s + ")"
}

// Hint leaves it to the tracer what becomes of a dimension.
type Hint struct {
	kind     string
	min, max *int64
	err      error
}

func (Hint) dimSpec() {}

// The hints, as Dim.AUTO, Dim.DYNAMIC and Dim.STATIC of PyTorch.
var (
	// Auto makes a dimension dynamic if the model's code allows it, and fixes it without a word if not.
	Auto = Hint{kind: "AUTO"}
	// Dynamic makes a dimension dynamic, and is an error if the code fixes it.
	Dynamic = Hint{kind: "DYNAMIC"}
	// Static fixes a dimension to the example's size.
	Static = Hint{kind: "STATIC"}
)

// Range bounds a hint's sizes, inclusively.
func (h Hint) Range(lo, hi int64) Hint {
	out := Hint{kind: h.kind, min: &lo, max: &hi, err: h.err}
	switch {
	case h.min != nil:
		out.err = &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("%v has bounds already", h)}
	case lo < 0 || hi < 0:
		out.err = &UserError{Kind: InvalidInput, Msg: "min and max must be non-negative"}
	case lo > hi:
		out.err = &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("min must be <= max, got min=%d, max=%d", lo, hi)}
	}
	return out
}

// String is PyTorch's text, such as "DimHint.AUTO".
func (h Hint) String() string {
	s := "DimHint." + h.kind
	if h.min != nil {
		s += fmt.Sprintf("(min=%d, max=%d)", *h.min, *h.max)
	}
	return s
}

// DimMap says for some dimensions of a tensor what they may become; the others are fixed. Negative numbers count from the end.
type DimMap map[int]DimSpec

// DimList says for each dimension of a tensor what it may become; nil fixes it.
type DimList []DimSpec

// String lists the dimensions.
func (l DimList) String() string {
	parts := make([]string, len(l))
	for i, d := range l {
		if parts[i] = "None"; d != nil {
			parts[i] = fmt.Sprint(d)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
