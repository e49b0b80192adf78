package cpu

import "github.com/pt2go/pt2/internal/pool"

// depthwiseNHWC convolves each channel with its own filter; w is [kernel, Out].
func depthwiseNHWC(p *pool.Pool, c *Conv, w, x, out []float32, ep *Epilogue) {
	rows := c.N * c.OutSize[0] * c.OutSize[1]
	row := c.OutSize[2] * c.Out
	finish := ep.over(out, c.Out)
	p.ParallelFor(rows, max(1, 65536/(row*volume(c.Kernel))), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			d := depthwiseRow{c: c, w: w, x: x, n: t / c.OutSize[1] / c.OutSize[0], z: t / c.OutSize[1] % c.OutSize[0], y: t % c.OutSize[1]}
			d.run(out[t*row : (t+1)*row])
			if finish != nil {
				finish([2]int{t * c.OutSize[2], (t + 1) * c.OutSize[2]}, [2]int{0, c.Out})
			}
		}
	})
}

// depthwiseRow is a row of the output.
type depthwiseRow struct {
	c       *Conv
	w, x    []float32
	n, z, y int
}

func (r *depthwiseRow) run(out []float32) {
	c := r.c
	for ox := range c.OutSize[2] {
		dst := out[ox*c.Out : (ox+1)*c.Out]
		clear(dst)
		t := 0
		for kz := range c.Kernel[0] {
			iz := r.z*c.Stride[0] - c.Pad[0] + kz*c.Dilation[0]
			for ky := range c.Kernel[1] {
				iy := r.y*c.Stride[1] - c.Pad[1] + ky*c.Dilation[1]
				for kx := range c.Kernel[2] {
					ix := ox*c.Stride[2] - c.Pad[2] + kx*c.Dilation[2]
					f := r.w[t*c.Out : (t+1)*c.Out]
					t++
					if iz < 0 || iz >= c.Size[0] || iy < 0 || iy >= c.Size[1] || ix < 0 || ix >= c.Size[2] {
						continue
					}
					src := r.x[(((r.n*c.Size[0]+iz)*c.Size[1]+iy)*c.Size[2]+ix)*c.In:][:c.In]
					for i, v := range src {
						dst[i] += v * f[i]
					}
				}
			}
		}
	}
}
