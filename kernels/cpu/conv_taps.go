package cpu

// windows says where the windows of a convolution lie in an input with channels last. The rows of the product are the output's
// positions, all images one after another; the segments of a row are the taps of the kernel, each a run of channels.
type windows struct {
	size, out         [3]int
	stride, pad, span [3]int // span is the distance of the first and the last tap
	image             int    // elements of an image
	step              [3]int // elements from one position to the next
	taps              []tap
}

// tap is an element of the kernel: its distance from the first one.
type tap struct {
	at [3]int
	by int // elements
}

// windows lists the windows of a convolution whose input has channels elements a position. With merged, a tap is a whole row of the
// kernel: the input must be padded and the kernel dense along the width.
func (c *Conv) windows(channels int, merged bool) *windows {
	w := &windows{size: c.Size, out: c.OutSize, stride: c.Stride, pad: c.Pad, image: volume(c.Size) * channels}
	w.step = [3]int{c.Size[1] * c.Size[2] * channels, c.Size[2] * channels, channels}
	kernel := c.Kernel
	if merged {
		kernel[2] = 1
	}
	for d := range w.span {
		w.span[d] = (kernel[d] - 1) * c.Dilation[d]
	}
	for z := range kernel[0] {
		for y := range kernel[1] {
			for x := range kernel[2] {
				t := tap{at: [3]int{z * c.Dilation[0], y * c.Dilation[1], x * c.Dilation[2]}}
				for d, n := range t.at {
					t.by += n * w.step[d]
				}
				w.taps = append(w.taps, t)
			}
		}
	}
	return w
}

// offsets appends where rows [i, i+h) begin for each tap, mr numbers a tap; outside for taps beyond the input's edge.
func (w *windows) offsets(dst []int, i, h, mr, outside int) []int {
	n := len(w.taps) * mr
	if cap(dst) < n {
		dst = make([]int, n)
	}
	dst = dst[:n]
	x, y, z := i%w.out[2], i/w.out[2]%w.out[1], i/w.out[2]/w.out[1]
	for r := range h {
		img, oz := z/w.out[0], z%w.out[0]
		at := [3]int{oz*w.stride[0] - w.pad[0], y*w.stride[1] - w.pad[1], x*w.stride[2] - w.pad[2]}
		base := img*w.image + at[0]*w.step[0] + at[1]*w.step[1] + at[2]*w.step[2]
		if w.inside(at) {
			k := r
			for t := range w.taps {
				dst[k] = base + w.taps[t].by
				k += mr
			}
		} else {
			w.clipped(dst[r:], at, base, mr, outside)
		}
		if x++; x == w.out[2] {
			x = 0
			if y++; y == w.out[1] {
				y = 0
				z++
			}
		}
	}
	return dst
}

// run tells whether the windows of rows [i, i+h) lie inside the input, side by side, and where the first one begins.
func (w *windows) run(i, h int) (at int, ok bool) {
	x, y, z := i%w.out[2], i/w.out[2]%w.out[1], i/w.out[2]/w.out[1]
	if x+h > w.out[2] {
		return 0, false
	}
	first := [3]int{z%w.out[0]*w.stride[0] - w.pad[0], y*w.stride[1] - w.pad[1], x*w.stride[2] - w.pad[2]}
	last := first
	last[2] += (h - 1) * w.stride[2]
	if !w.inside(first) || !w.inside(last) {
		return 0, false
	}
	return z/w.out[0]*w.image + first[0]*w.step[0] + first[1]*w.step[1] + first[2]*w.step[2], true
}

// runOffsets are the offsets of mr windows side by side from the first one.
func (w *windows) runOffsets(mr int) []int {
	dst := make([]int, 0, len(w.taps)*mr)
	for t := range w.taps {
		for r := range mr {
			dst = append(dst, w.taps[t].by+r*w.stride[2]*w.step[2])
		}
	}
	return dst
}

// inside tells whether all taps of the window at a place are inside the input.
func (w *windows) inside(at [3]int) bool {
	return at[0] >= 0 && at[0]+w.span[0] < w.size[0] && at[1] >= 0 && at[1]+w.span[1] < w.size[1] && at[2] >= 0 && at[2]+w.span[2] < w.size[2]
}

func (w *windows) clipped(dst []int, at [3]int, base, mr, outside int) {
	for t := range w.taps {
		tap := &w.taps[t]
		v := outside
		if uint(at[0]+tap.at[0]) < uint(w.size[0]) && uint(at[1]+tap.at[1]) < uint(w.size[1]) && uint(at[2]+tap.at[2]) < uint(w.size[2]) {
			v = base + tap.by
		}
		dst[t*mr] = v
	}
}
