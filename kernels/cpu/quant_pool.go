package cpu

import (
	"sync"

	"github.com/pt2go/pt2/internal/pool"
)

// MaxPoolNHWCU8 is the largest number of each window of x [N, H, W, C] with channels last, of unsigned (or, with signed, of signed)
// 8-bit integers; c.In is C, and padding does not count.
func MaxPoolNHWCU8(p *pool.Pool, c *Conv, x, out []uint8, signed bool) {
	flip := uint8(0)
	if signed {
		flip = 0x80
	}
	h, w, oh, ow := c.Size[1], c.Size[2], c.OutSize[1], c.OutSize[2]
	p.ParallelFor(c.N*oh, max(1, 16384/max(ow*c.In, 1)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			n, i := t/oh, t%oh
			for j := range ow {
				d := out[(t*ow+j)*c.In:][:c.In]
				first := true
				for kh := range c.Kernel[1] {
					y := i*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
					if y < 0 || y >= h {
						continue
					}
					for kw := range c.Kernel[2] {
						z := j*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
						if z < 0 || z >= w {
							continue
						}
						src := x[((n*h+y)*w+z)*c.In:][:c.In]
						if first {
							copy(d, src)
							first = false
							continue
						}
						maxBytes(d, src, flip)
					}
				}
			}
		}
	})
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
