package cpu

// convLayout is a copy of the input with its padding, in which each tap reads consecutive elements for the consecutive outputs of a
// row: with a stride s along the width, columns are sorted by their remainder modulo s.
type convLayout struct {
	c       *Conv
	direct  bool   // the input itself has this layout, and no copy is made
	size    [3]int // with padding: depth, height, columns that are used
	columns columns
	plane   int   // elements of a channel
	taps    []int // offset of each kernel element, from the position of an output
	before  int   // elements before the first plane, where blended reads may begin
}

const convSlack = 16

func (c *Conv) layout() *convLayout {
	l := &convLayout{c: c, taps: make([]int, 0, volume(c.Kernel))}
	for d := range l.size {
		l.size[d] = (c.OutSize[d]-1)*c.Stride[d] + (c.Kernel[d]-1)*c.Dilation[d] + 1
	}
	l.columns = makeColumns(l.size[2], c.Stride[2], c.Pad[2], c.Kernel[2], c.Dilation[2])
	l.plane = l.size[0] * l.size[1] * l.columns.row
	l.direct = volume(c.Kernel) == 1 && c.Stride == [3]int{1, 1, 1} && c.Pad == [3]int{} && c.OutSize == c.Size && !c.depthwise()
	for kd := range c.Kernel[0] {
		for kh := range c.Kernel[1] {
			for _, x := range l.columns.taps {
				l.taps = append(l.taps, (kd*c.Dilation[0]*l.size[1]+kh*c.Dilation[1])*l.columns.row+x)
			}
		}
	}
	if !l.direct {
		l.before = convSlack
	}
	return l
}

// slack is how many elements there must be beside the planes.
func (l *convLayout) slack() int { return 2*convSlack + 16 }

// position is where the taps of output position q begin.
func (l *convLayout) position(q int) int {
	c := l.c
	x, y, z := q%c.OutSize[2], q/c.OutSize[2]%c.OutSize[1], q/c.OutSize[2]/c.OutSize[1]
	return l.before + (z*c.Stride[0]*l.size[1]+y*c.Stride[1])*l.columns.row + x
}

// offsets lists the taps of all channels of a group.
func (l *convLayout) offsets(channels int) []int {
	o := make([]int, 0, channels*len(l.taps))
	for ch := range channels {
		for _, t := range l.taps {
			o = append(o, ch*l.plane+t)
		}
	}
	return o
}

// copyPlane copies one channel.
func (l *convLayout) copyPlane(dst, src []float32) {
	c := l.c
	dst = dst[:l.plane]
	if c.Pad != [3]int{} {
		clear(dst)
	}
	for z := max(0, c.Pad[0]); z < min(l.size[0], c.Pad[0]+c.Size[0]); z++ {
		for y := max(0, c.Pad[1]); y < min(l.size[1], c.Pad[1]+c.Size[1]); y++ {
			at := ((z-c.Pad[0])*c.Size[1] + y - c.Pad[1]) * c.Size[2]
			l.columns.copy(dst[(z*l.size[1]+y)*l.columns.row:], src[at:at+c.Size[2]])
		}
	}
}

// convPanel says where the sixteen positions of a panel are read.
type convPanel struct {
	at    [nr]int
	width int        // positions that exist
	place [4]int     // each half is read from two places,
	mask  [nr]uint32 // the second where the mask is set
	wide  bool       // that is possible
}

// panel finds the places of positions [q, q+w).
func (l *convLayout) panel(q, w int) (p convPanel) {
	p.width = w
	at, x := l.position(q), q%l.c.OutSize[2]
	for i := range w {
		p.at[i] = at
		at++
		if x++; x == l.c.OutSize[2] && i+1 < w {
			at, x = l.position(q+i+1), 0
		}
	}
	p.wide = !l.direct || w == nr
	for h := range 2 {
		if n := min(8, w-8*h); n > 0 {
			p.half(h, p.at[8*h:8*h+n])
		} else {
			p.place[2*h], p.place[2*h+1] = l.before, l.before
		}
	}
	return p
}

// half finds the two places from which eight lanes can be read. Lanes that do not exist may hold anything.
func (p *convPanel) half(h int, lanes []int) {
	a, b := lanes[0], lanes[0]
	for i, v := range lanes {
		if v == a+i {
			continue
		}
		if v != b+i {
			if a != b {
				p.wide = false
				return
			}
			b = v - i
		}
		p.mask[8*h+i] = 1 << 31
	}
	p.place[2*h], p.place[2*h+1] = a, b
}

// pack writes dst[k*nr+i] = src[offsets[k] + at[i]].
func (p *convPanel) pack(dst, src []float32, offsets []int) {
	if hasAVX2 && p.wide {
		packConvF32AVX2(&dst[0], &src[0], &offsets[0], len(offsets), &p.place, &p.mask)
		return
	}
	for k, o := range offsets {
		d := dst[k*nr : k*nr+nr]
		for i, a := range p.at[:p.width] {
			d[i] = src[o+a]
		}
		clear(d[p.width:])
	}
}
