package cpu

// columns is a copy of a row with its padding in which each tap of a window reads consecutive elements for consecutive outputs:
// with a stride s, columns are sorted by their remainder modulo s.
type columns struct {
	stride, pad int
	count       int   // columns of one remainder
	row         int   // elements of a row
	begin       []int // where the columns of a remainder begin; -1 where no tap reads them
	taps        []int // offset of each tap from an output's index
}

// makeColumns lays out rows of size columns, padding included.
func makeColumns(size, stride, pad, kernel, dilation int) columns {
	c := columns{stride: stride, pad: pad, count: (size + stride - 1) / stride, begin: make([]int, stride)}
	for i := range c.begin {
		c.begin[i] = -1
	}
	for k := range kernel {
		x := k * dilation
		r := x % stride
		if c.begin[r] < 0 {
			c.begin[r] = c.row
			c.row += c.count
		}
		c.taps = append(c.taps, c.begin[r]+x/stride)
	}
	return c
}

// copy writes what lies inside the line; the padding is left as it is.
func (c *columns) copy(dst, line []float32) {
	s := c.stride
	for r, at := range c.begin {
		if at < 0 {
			continue
		}
		d := dst[at : at+c.count]
		x := r - c.pad // the line's column of d[0]
		lo := 0
		if x < 0 {
			lo = (-x + s - 1) / s
		}
		hi := min(c.count, (len(line)-x+s-1)/s)
		if lo >= hi {
			continue
		}
		if s == 1 {
			copy(d[lo:hi], line[x+lo:])
		} else {
			every(d[lo:hi], line[x+lo*s:], s)
		}
	}
}

// every is dst[i] = src[i*s].
func every(dst, src []float32, s int) {
	n := 0
	if hasAVX2 && s == 2 && len(dst) > 8 {
		n = (len(dst) - 1) &^ 7
		everySecondF32AVX2(&dst[0], &src[0], n)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = src[i*s]
	}
}
