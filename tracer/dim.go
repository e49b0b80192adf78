package tracer

import (
	"fmt"
	"math"
	"regexp"
)

// Dim is a named size that exported programs take any value for, within bounds.
type Dim struct {
	name     string
	min, max int64
}

// DimOption bounds a [Dim].
type DimOption func(*Dim)

// Min is the smallest size; the default is 0.
func Min(n int64) DimOption { return func(d *Dim) { d.min = n } }

// Max is the largest size; the default is none.
func Max(n int64) DimOption { return func(d *Dim) { d.max = n } }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewDim makes a Dim. The name must be an identifier, and max larger than min.
func NewDim(name string, opts ...DimOption) (*Dim, error) {
	d := &Dim{name: name, max: math.MaxInt64}
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

// Name is the Dim's name.
func (d *Dim) Name() string { return d.name }

// Bounds gives the smallest and largest size.
func (d *Dim) Bounds() (min, max int64) { return d.min, d.max }

// String is PyTorch's text, such as "Dim('b', min=3, max=9)"; a min of 2 is not printed, a min of 0 is.
func (d *Dim) String() string {
	s := "Dim('" + d.name + "'"
	if d.min != 2 {
		s += fmt.Sprintf(", min=%d", d.min)
	}
	if d.max != math.MaxInt64 {
		s += fmt.Sprintf(", max=%d", d.max)
	}
	return s + ")"
}
