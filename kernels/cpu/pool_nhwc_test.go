package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// poolWindows calls f for the input elements of each window of channel ch.
func poolWindows(c *Conv, f func(out int, in []int)) {
	for o := range c.N * volume(c.OutSize) {
		x, y := o%c.OutSize[2], o/c.OutSize[2]%c.OutSize[1]
		z, n := o/c.OutSize[2]/c.OutSize[1]%c.OutSize[0], o/volume(c.OutSize)
		var in []int
		for kz := range c.Kernel[0] {
			for ky := range c.Kernel[1] {
				for kx := range c.Kernel[2] {
					iz, iy, ix := z*c.Stride[0]-c.Pad[0]+kz*c.Dilation[0], y*c.Stride[1]-c.Pad[1]+ky*c.Dilation[1], x*c.Stride[2]-c.Pad[2]+kx*c.Dilation[2]
					if iz >= 0 && iz < c.Size[0] && iy >= 0 && iy < c.Size[1] && ix >= 0 && ix < c.Size[2] {
						in = append(in, ((n*c.Size[0]+iz)*c.Size[1]+iy)*c.Size[2]+ix)
					}
				}
			}
		}
		f(o, in)
	}
}

func TestPoolNHWC(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []Conv{
		{N: 2, In: 5, Size: [3]int{1, 9, 7}, Kernel: [3]int{1, 3, 3}, Stride: [3]int{1, 2, 2}, Pad: [3]int{0, 1, 1}, Dilation: [3]int{1, 1, 1}},
		{N: 1, In: 33, Size: [3]int{1, 8, 8}, Kernel: [3]int{1, 2, 2}, Stride: [3]int{1, 2, 2}, Dilation: [3]int{1, 1, 1}},
		{N: 1, In: 16, Size: [3]int{4, 6, 5}, Kernel: [3]int{2, 3, 2}, Stride: [3]int{1, 1, 2}, Pad: [3]int{1, 1, 0}, Dilation: [3]int{1, 2, 1}},
	} {
		for d := range 3 {
			c.OutSize[d] = (c.Size[d]+2*c.Pad[d]-(c.Kernel[d]-1)*c.Dilation[d]-1)/c.Stride[d] + 1
		}
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			x := make([]float32, c.N*volume(c.Size)*c.In)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			x[3] = float32(math.NaN())
			out := make([]float32, c.N*volume(c.OutSize)*c.In)
			avg := make([]float32, len(out))
			MaxPoolNHWC(p, &c, x, out)
			AvgPoolNHWC(p, &c, x, avg, false, 0)
			poolWindows(&c, func(o int, in []int) {
				for ch := range c.In {
					m, s := math.Inf(-1), 0.0
					for _, i := range in {
						v := float64(x[i*c.In+ch])
						s += v
						m = max(m, v)
					}
					if g := float64(out[o*c.In+ch]); g != m && !(g != g && m != m) {
						t.Fatalf("maximum %d of channel %d is %v, want %v", o, ch, g, m)
					}
					s /= float64(len(in))
					if g := float64(avg[o*c.In+ch]); math.Abs(g-s) > 1e-6*(1+math.Abs(s)) {
						t.Fatalf("mean %d of channel %d is %v, want %v", o, ch, g, s)
					}
				}
			})
		})
	}
}

func TestMeanRows(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{{1, 1, 1}, {2, 7, 5}, {1, 3000, 33}, {3, 129, 1500}, {1, 50000, 3}} {
		outer, rows, cols := s[0], s[1], s[2]
		x, out := make([]float32, outer*rows*cols), make([]float32, outer*cols)
		for i := range x {
			x[i] = float32(r.NormFloat64()) + 3
		}
		MeanRowsF32(p, x, out, outer, rows, cols)
		for i := range out {
			want := 0.0
			for k := range rows {
				want += float64(x[(i/cols*rows+k)*cols+i%cols])
			}
			want /= float64(rows)
			if math.Abs(float64(out[i])-want) > 2e-6*math.Abs(want)+1e-7 {
				t.Fatalf("%v: mean %d is %v, want %v", s, i, out[i], want)
			}
		}
	}
}
