package tensor

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The defaults of torch.set_printoptions.
const (
	printPrecision = 4
	printThreshold = 1000 // elements; larger tensors are shortened
	printEdge      = 3    // elements at each end of a shortened dimension
	printWidth     = 80
)

// String prints the tensor as PyTorch does: tensor([[1., 2.], [3., 4.]]), with the dtype where it is not the usual one of its kind,
// and large tensors shortened.
func (t *Tensor) String() string {
	const prefix = "tensor("
	var suffixes []string
	body := "[]"
	usual := t.dtype == Float32 || t.dtype == Int64 || t.dtype == Bool || t.dtype == Complex64
	if t.Numel() == 0 {
		if len(t.sizes) != 1 {
			suffixes = append(suffixes, "size="+tupleText(t.sizes))
		}
		usual = t.dtype == Float32
	} else {
		p := t.printer()
		body = p.text(t.sizes, t.offset, len(prefix))
	}
	if !usual {
		suffixes = append(suffixes, "dtype=torch."+t.dtype.String())
	}
	var b strings.Builder
	b.WriteString(prefix + body)
	last := len(prefix) + len(body) - strings.LastIndexByte(body, '\n')
	if !strings.Contains(body, "\n") {
		last++
	}
	for _, s := range suffixes {
		if last+len(s)+2 > printWidth {
			b.WriteString(",\n" + strings.Repeat(" ", len(prefix)) + s)
			last = len(prefix) + len(s)
			continue
		}
		b.WriteString(", " + s)
		last += len(s) + 2
	}
	b.WriteByte(')')
	return b.String()
}

func tupleText(sizes []int64) string {
	s := make([]string, len(sizes))
	for i, n := range sizes {
		s[i] = strconv.FormatInt(n, 10)
	}
	if len(s) == 1 {
		return "(" + s[0] + ",)"
	}
	return "(" + strings.Join(s, ", ") + ")"
}

// printer writes the elements of one tensor in columns.
type printer struct {
	t      *Tensor
	short  bool
	re, im column
}

// column is how all real parts, or all imaginary parts, are written.
type column struct {
	t           *Tensor
	float       bool
	whole, sci  bool
	width       int
	least, most float64 // of the absolute values that are finite and not zero
	seen        bool
}

func (t *Tensor) printer() *printer {
	p := &printer{t: t, short: t.Numel() > printThreshold}
	p.re = column{t: t, float: t.dtype.IsFloat() || t.dtype.IsComplex(), whole: true, width: 1}
	p.im = p.re
	p.each(t.sizes, t.offset, func(off int64) {
		re, im := t.element(off)
		p.re.note(re)
		p.im.note(im)
	})
	p.re.decide()
	p.im.decide()
	p.each(t.sizes, t.offset, func(off int64) {
		re, im := t.element(off)
		p.re.measure(off, re)
		p.im.measure(off, im)
	})
	return p
}

// each visits the elements that are printed.
func (p *printer) each(sizes []int64, off int64, f func(off int64)) {
	if len(sizes) == 0 {
		f(off)
		return
	}
	stride := p.t.strides[len(p.t.sizes)-len(sizes)]
	for i := int64(0); i < sizes[0]; i++ {
		if p.cut(sizes[0]) && i == printEdge {
			i = sizes[0] - printEdge
		}
		p.each(sizes[1:], off+i*stride, f)
	}
}

// cut reports that a dimension is shortened.
func (p *printer) cut(n int64) bool { return p.short && n > 2*printEdge }

func (c *column) note(v float64) {
	a := math.Abs(v)
	if !c.float || a == 0 || math.IsNaN(a) || math.IsInf(a, 0) {
		return
	}
	if !c.seen {
		c.least, c.most, c.seen = a, a, true
	}
	c.least, c.most = math.Min(c.least, a), math.Max(c.most, a)
	c.whole = c.whole && v == math.Ceil(v)
}

// decide chooses between 1., 1.0000 and 1.0000e+00.
func (c *column) decide() {
	ratio := c.most / c.least
	if c.t.dtype != Float64 && c.t.dtype != Complex128 {
		ratio = float64(float32(c.most) / float32(c.least)) // PyTorch computes in float
	}
	c.sci = c.seen && (ratio > 1000 || c.most > 1e8 || c.least < 1e-4)
}

func (c *column) measure(off int64, v float64) {
	switch {
	case !c.float:
		c.width = max(c.width, len(c.digits(off, v)))
	case v == 0 || math.IsNaN(v) || math.IsInf(v, 0):
	default:
		c.width = max(c.width, len(c.digits(off, v)))
	}
}

// digits writes one element without padding.
func (c *column) digits(off int64, v float64) string {
	switch {
	case !c.float:
		return c.t.integerText(off, v)
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case c.sci:
		return strconv.FormatFloat(v, 'e', printPrecision, 64)
	case c.whole:
		return strconv.FormatFloat(v, 'f', 0, 64) + "."
	}
	return strconv.FormatFloat(v, 'f', printPrecision, 64)
}

func (c *column) text(off int64, v float64) string {
	s := c.digits(off, v)
	return strings.Repeat(" ", max(c.width-len(s), 0)) + s
}

// integerText writes an integer or a bool.
func (t *Tensor) integerText(off int64, v float64) string {
	p := &Tensor{storage: t.storage, dtype: t.dtype, offset: off}
	switch t.dtype {
	case Bool:
		if v != 0 {
			return "True"
		}
		return "False"
	case Int64:
		return strconv.FormatInt(Data[int64](p)[0], 10)
	case Uint64:
		return strconv.FormatUint(Data[uint64](p)[0], 10)
	}
	return strconv.FormatInt(int64(v), 10)
}

func (p *printer) elementText(off int64) string {
	re, im := p.t.element(off)
	if !p.t.dtype.IsComplex() {
		return p.re.text(off, re)
	}
	s := strings.TrimLeft(p.im.text(off, im), " ") + "j"
	if s[0] != '-' {
		s = "+" + s
	}
	return p.re.text(off, re) + s
}

func (p *printer) text(sizes []int64, off int64, indent int) string {
	switch len(sizes) {
	case 0:
		return p.elementText(off)
	case 1:
		return p.vector(sizes[0], off, indent)
	}
	stride := p.t.strides[len(p.t.sizes)-len(sizes)]
	var parts []string
	for i := int64(0); i < sizes[0]; i++ {
		if p.cut(sizes[0]) && i == printEdge {
			parts = append(parts, "...")
			i = sizes[0] - printEdge
		}
		parts = append(parts, p.text(sizes[1:], off+i*stride, indent+1))
	}
	return "[" + strings.Join(parts, ","+strings.Repeat("\n", len(sizes)-1)+strings.Repeat(" ", indent+1)) + "]"
}

// vector writes the last dimension, as many elements a line as fit.
func (p *printer) vector(n, off int64, indent int) string {
	width := p.re.width + 2
	if p.t.dtype.IsComplex() {
		width += p.im.width + 1
	}
	perLine := max(1, (printWidth-indent)/width)
	stride := p.t.strides[len(p.t.sizes)-1]
	var data []string
	for i := int64(0); i < n; i++ {
		if p.cut(n) && i == printEdge {
			data = append(data, " ...")
			i = n - printEdge
		}
		data = append(data, p.elementText(off+i*stride))
	}
	var lines []string
	for len(data) > 0 {
		k := min(perLine, len(data))
		lines = append(lines, strings.Join(data[:k], ", "))
		data = data[k:]
	}
	return "[" + strings.Join(lines, ",\n"+strings.Repeat(" ", indent+1)) + "]"
}

// elementText is one element as it is, for messages.
func (t *Tensor) elementText(off int64) string {
	re, im := t.element(off)
	switch {
	case t.dtype.IsComplex():
		return fmt.Sprint(complex(re, im))
	case t.dtype.IsFloat():
		return fmt.Sprint(re)
	}
	return t.integerText(off, re)
}
