package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// outSize fills in the size of the output.
func (c *Conv) outSize() {
	for d := range c.OutSize {
		c.OutSize[d] = (c.Size[d]+2*c.Pad[d]-c.Dilation[d]*(c.Kernel[d]-1)-1)/c.Stride[d] + 1
	}
}

func conv2d(n, in, out, groups, h, w, kh, kw, stride, pad, dilation int) Conv {
	c := Conv{N: n, In: in, Out: out, Groups: groups, Size: [3]int{1, h, w}, Kernel: [3]int{1, kh, kw},
		Stride: [3]int{1, stride, stride}, Pad: [3]int{0, pad, pad}, Dilation: [3]int{1, dilation, dilation}}
	c.outSize()
	return c
}

var convCases = []Conv{
	conv2d(1, 3, 5, 1, 9, 11, 3, 3, 1, 1, 1),
	conv2d(2, 4, 7, 1, 7, 7, 3, 3, 1, 1, 1),
	conv2d(1, 4, 13, 1, 14, 14, 3, 3, 2, 1, 1),
	conv2d(1, 3, 8, 1, 30, 31, 7, 7, 2, 3, 1),
	conv2d(2, 40, 20, 1, 5, 6, 1, 1, 1, 0, 1),
	conv2d(2, 6, 20, 1, 15, 6, 1, 1, 2, 0, 1),
	conv2d(1, 6, 6, 6, 12, 40, 3, 3, 1, 1, 1),
	conv2d(2, 6, 12, 6, 13, 9, 5, 3, 2, 2, 1),
	conv2d(1, 8, 12, 2, 10, 10, 3, 3, 1, 2, 2),
	conv2d(1, 70, 9, 1, 8, 8, 3, 3, 1, 1, 1),
	conv2d(1, 3, 4, 1, 4, 3, 4, 3, 1, 0, 1),
	conv2d(1, 3, 4, 1, 3, 3, 3, 3, 1, 1, 1),
	conv2d(1, 2, 4, 1, 20, 20, 3, 2, 3, 1, 2),
	conv2d(1, 4, 4, 1, 1, 33, 1, 5, 1, 2, 1),
	conv2d(1, 300, 8, 1, 2, 9, 1, 1, 1, 0, 1),
	{N: 2, In: 3, Out: 4, Groups: 1, Size: [3]int{5, 6, 7}, Kernel: [3]int{3, 2, 3}, OutSize: [3]int{3, 7, 4}, Stride: [3]int{2, 1, 2}, Pad: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}},
	conv2d(1, 70, 70, 70, 9, 23, 3, 3, 1, 1, 1), conv2d(2, 37, 37, 37, 9, 10, 5, 5, 2, 2, 1), conv2d(1, 100, 100, 100, 7, 7, 7, 7, 1, 3, 1),
	conv2d(1, 9, 9, 9, 2, 9, 3, 3, 1, 4, 1), conv2d(1, 16, 16, 16, 4, 3, 3, 3, 2, 3, 2), conv2d(1, 3, 5, 1, 2, 9, 3, 3, 1, 4, 1),
	conv2d(1, 32, 48, 1, 16, 16, 3, 3, 1, 1, 1), conv2d(2, 48, 32, 1, 13, 9, 3, 3, 1, 1, 1), conv2d(1, 32, 32, 1, 15, 18, 3, 3, 1, 0, 1),
	conv2d(1, 1040, 5, 1, 3, 3, 1, 1, 1, 1, 1), conv2d(1, 700, 9, 1, 7, 7, 1, 1, 2, 0, 1), conv2d(1, 20, 24, 1, 5, 40, 3, 3, 1, 1, 1),
	conv2d(1, 32, 32, 8, 9, 11, 3, 3, 1, 1, 1), conv2d(2, 24, 24, 12, 9, 11, 3, 3, 2, 1, 1), conv2d(1, 40, 40, 5, 7, 7, 5, 5, 1, 2, 1), conv2d(1, 48, 48, 3, 7, 7, 3, 3, 1, 1, 1),
	conv2d(1, 20, 40, 1, 13, 13, 3, 3, 1, 1, 1), conv2d(1, 33, 70, 1, 9, 9, 3, 3, 1, 1, 1),
	{N: 1, In: 4, Out: 4, Groups: 4, Size: [3]int{5, 6, 7}, Kernel: [3]int{3, 2, 3}, OutSize: [3]int{3, 7, 4}, Stride: [3]int{2, 1, 2}, Pad: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}},
}

func TestConvAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, c := range convCases {
			x := randoms(rng, c.N*c.In*volume(c.Size))
			w, bias := randoms(rng, c.Out*c.In/c.Groups*volume(c.Kernel)), randoms(rng, c.Out)
			n := c.N * c.Out * volume(c.OutSize)
			want64 := make([]float64, n)
			ConvDirect(&c, widen(x), widen(w), widen(bias), want64)
			for _, p := range []*pool.Pool{nil, p} {
				buf := randoms(rng, n+32)
				frame := append([]float32(nil), buf...)
				got := buf[16 : 16+n : 16+n]
				c.ForwardF32(p, x, w, bias, got)
				name := fmt.Sprintf("%+v", c)
				closeTo(t, name, got, want64, 1e-4)
				for i := range buf {
					if (i < 16 || i >= 16+n) && buf[i] != frame[i] {
						t.Fatalf("%s: element %d of %d was written", name, i-16, n)
					}
				}
			}
		}
	})
}

func TestConvTransposedAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, c := range convCases {
		x, w := randoms(rng, c.N*c.In*volume(c.Size)), randoms(rng, c.In*c.Out/c.Groups*volume(c.Kernel))
		for d := range c.OutSize {
			c.OutSize[d] = (c.Size[d]-1)*c.Stride[d] - 2*c.Pad[d] + c.Dilation[d]*(c.Kernel[d]-1) + 1
		}
		if min(c.OutSize[0], c.OutSize[1], c.OutSize[2]) < 1 {
			continue
		}
		got, want := make([]float32, c.N*c.Out*volume(c.OutSize)), make([]float64, c.N*c.Out*volume(c.OutSize))
		c.TransposedF32(nil, x, w, nil, got)
		ConvTransposed(&c, widen(x), widen(w), nil, want)
		closeTo(t, fmt.Sprintf("%+v", c), got, want, 1e-4)
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	F32ToF64(y, x)
	return y
}

// closeTo compares with an absolute and relative tolerance; NaN equals NaN.
func closeTo(t *testing.T, name string, got []float32, want []float64, tol float64) {
	t.Helper()
	for i, w := range want {
		g := float64(got[i])
		if g == w || g != g && w != w {
			continue
		}
		if d := math.Abs(g - w); !(d <= tol*(1+math.Abs(w))) {
			t.Fatalf("%s: element %d is %v, want %v", name, i, g, w)
		}
	}
}
