package cpu

import (
	"sync"

	"github.com/pt2go/pt2/internal/pool"
)

// MaxPoolNHWCU8 is the largest number of each window of x [N, H, W, C] with channels last, of unsigned (or, with signed, of signed)
// 8-bit integers; c.In is C, and padding does not count.
func MaxPoolNHWCU8(p *pool.Pool, c *Conv, x, out []uint8, signed bool) {
	h, oh, ow := c.Size[1], c.OutSize[1], c.OutSize[2]
	p.ParallelFor(c.N*oh, max(1, 65536/max(ow*c.In*volume(c.Kernel), 1)), func(lo, hi int) {
		taps := make([]int, 0, volume(c.Kernel))
		for t := lo; t < hi; t++ {
			n, y := t/oh, t%oh*c.Stride[1]-c.Pad[1]
			k0, k1 := inside(y, c.Dilation[1], c.Kernel[1], h)
			maxPoolLine(c, x[n*h*c.Size[2]*c.In:][:h*c.Size[2]*c.In], out[t*ow*c.In:][:ow*c.In], y, k0, k1, taps, signed)
		}
	})
}

// inside gives the taps [lo, hi) of a window that begins at y whose place lies in [0, size).
func inside(y, dilation, kernel, size int) (lo, hi int) {
	for hi = kernel; hi > 0 && y+(hi-1)*dilation >= size; hi-- {
	}
	for lo < hi && y+lo*dilation < 0 {
		lo++
	}
	return lo, hi
}

// maxPoolLine computes a line of the output from rows k0 to k1 of windows that begin at line y of the image x. Positions whose windows lie
// within the image across are computed in one call.
func maxPoolLine(c *Conv, x, out []uint8, y, k0, k1 int, taps []int, signed bool) {
	w, ow, ch := c.Size[2], c.OutSize[2], c.In
	for j := 0; j < ow; {
		z := j*c.Stride[2] - c.Pad[2]
		l0, l1 := inside(z, c.Dilation[2], c.Kernel[2], w)
		n := 1
		for whole := l0 == 0 && l1 == c.Kernel[2]; whole && j+n < ow && z+n*c.Stride[2]+(l1-1)*c.Dilation[2] < w; {
			n++
		}
		taps = taps[:0]
		for kh := k0; kh < k1; kh++ {
			for kw := l0; kw < l1; kw++ {
				taps = append(taps, ((y+kh*c.Dilation[1])*w+z+kw*c.Dilation[2])*ch)
			}
		}
		maxPositions(x, c.Stride[2]*ch, n, taps, ch, out[j*ch:(j+n)*ch], signed)
		j += n
	}
}

// maxPositions takes the largest of taps for n positions of ch channels, step apart in x.
func maxPositions(x []uint8, step, n int, taps []int, ch int, out []uint8, signed bool) {
	if len(taps) == 0 || ch == 0 {
		return
	}
	if hasAVX512 {
		kernel := maxWindowU8AVX512
		if signed {
			kernel = maxWindowS8AVX512
		}
		kernel(&x[0], step, n, &taps[0], len(taps), ch, &out[0])
		return
	}
	flip := uint8(0)
	if signed {
		flip = 0x80
	}
	for i := range n {
		d := out[i*ch : (i+1)*ch]
		copy(d, x[i*step+taps[0]:])
		for _, t := range taps[1:] {
			maxBytes(d, x[i*step+t:][:ch], flip)
		}
	}
}

func maxBytes(d, x []uint8, flip uint8) {
	n := 0
	if full := len(d) &^ 31; hasAVX2 && full > 0 && flip == 0 {
		n = full
		maxU8AVX2(&d[0], &x[0], n)
	}
	for i := n; i < len(d); i++ {
		d[i] = max(d[i]^flip, x[i]^flip) ^ flip
	}
}

// byteBuffer is memory for bytes.
type byteBuffer struct{ data []uint8 }

var byteBuffers = sync.Pool{New: func() any { return new(byteBuffer) }}

func bytesScratch(n int) *byteBuffer {
	b := byteBuffers.Get().(*byteBuffer)
	if cap(b.data) < n {
		b.data = make([]uint8, n+n/4)
	}
	b.data = b.data[:n]
	return b
}

func (b *byteBuffer) free() { byteBuffers.Put(b) }
