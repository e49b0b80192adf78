package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// toLast and toFirst move the channels of [n, ch, positions] behind the positions, and back.
func toLast(x []float32, n, ch, pos int) []float32 {
	y := make([]float32, len(x))
	for i := range n {
		TransposeF32(y[i*ch*pos:], x[i*ch*pos:], ch, pos, ch, pos)
	}
	return y
}

func toFirst(x []float32, n, ch, pos int) []float32 { return toLast(x, n, pos, ch) }

func packConv(c *Conv, w []float32) *PackedConv { return PackConv(c, w, nil, false) }

// Filters are multiplied by a number for each output channel, in each of their forms; where a result is not finite the tile is computed
// again with the filters as they were given.
func TestPackedScale(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	inf := float32(math.Inf(1))
	for _, c := range []Conv{
		conv2d(1, 33, 40, 1, 6, 6, 3, 3, 1, 1, 1), conv2d(1, 33, 40, 1, 6, 6, 1, 1, 1, 0, 1), conv2d(1, 64, 40, 4, 6, 6, 3, 3, 1, 1, 1),
		conv2d(1, 40, 40, 40, 6, 6, 3, 3, 1, 1, 1), conv2d(1, 64, 80, 1, 16, 16, 3, 3, 1, 1, 1),
	} {
		for _, lasting := range []bool{false, true} {
			x, w, scale := randoms(rng, c.N*c.In*volume(c.Size)), randoms(rng, c.Out*c.In/c.Groups*volume(c.Kernel)), randoms(rng, c.Out)
			x[rng.Intn(len(x))] = inf
			scaled := slices.Clone(w)
			per := len(w) / c.Out
			for i := range scaled {
				scaled[i] *= scale[i/per]
			}
			got, want := make([]float32, c.N*c.Out*volume(c.OutSize)), make([]float64, c.N*c.Out*volume(c.OutSize))
			ConvDirect(&c, widen(x), widen(scaled), nil, want)
			packed := PackConv(&c, w, scale, lasting)
			ConvNHWC(nil, &c, packed, toLast(x, c.N, c.In, volume(c.Size)), got, nil)
			closeTo(t, fmt.Sprintf("%+v", c), toFirst(got, c.N, c.Out, volume(c.OutSize)), want, 1e-4)
		}
	}
}

func TestConvNHWCAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, c := range convCases {
			x := randoms(rng, c.N*c.In*volume(c.Size))
			w, bias := randoms(rng, c.Out*c.In/c.Groups*volume(c.Kernel)), randoms(rng, c.Out)
			pos := volume(c.OutSize)
			n := c.N * c.Out * pos
			residual := randoms(rng, n)
			want64 := make([]float64, n)
			ConvDirect(&c, widen(x), widen(w), widen(bias), want64)
			for _, ep := range []*Epilogue{
				{ColBias: bias, Residual: toLast(residual, c.N, c.Out, pos), ResidualStep: c.Out, Act: Activation{Kind: ActReLU}},
				{ColBias: bias, Residual: toLast(residual, c.N, c.Out, pos), ResidualStep: c.Out, Act: Activation{Kind: ActClamp, Lo: -1, Hi: 6}, ActFirst: true},
				{ColBias: bias},
			} {
				want := make([]float64, n)
				for i, v := range want64 {
					switch {
					case ep.Residual == nil:
						want[i] = v
					case ep.ActFirst:
						want[i] = min(6, max(-1, v)) + float64(residual[i])
					default:
						want[i] = max(0, v+float64(residual[i]))
					}
				}
				for _, p := range []*pool.Pool{nil, p} {
					buf := randoms(rng, n+32)
					frame := append([]float32(nil), buf...)
					got := buf[16 : 16+n : 16+n]
					ConvNHWC(p, &c, packConv(&c, w), toLast(x, c.N, c.In, volume(c.Size)), got, ep)
					name := fmt.Sprintf("%+v", c)
					closeTo(t, name, toFirst(got, c.N, c.Out, pos), want, 1e-4)
					for i := range buf {
						if (i < 16 || i >= 16+n) && buf[i] != frame[i] {
							t.Fatalf("%s: element %d of %d was written", name, i-16, n)
						}
					}
				}
			}
		}
	})
}

func TestTransposedNHWCAgainstDefinition(t *testing.T) {
	for _, least := range []int{0, phaseWork} {
		t.Run(fmt.Sprint(least), func(t *testing.T) {
			defer func(old int) { phaseWork = old }(phaseWork)
			phaseWork = least
			testTransposedNHWC(t)
		})
	}
}

func testTransposedNHWC(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	cases := append([]Conv{
		conv2d(2, 16, 20, 1, 7, 9, 2, 2, 2, 0, 1), conv2d(1, 5, 3, 1, 4, 6, 3, 2, 2, 0, 1), conv2d(1, 33, 17, 1, 4, 14, 4, 4, 4, 0, 1),
		{N: 2, In: 6, Out: 5, Groups: 1, Size: [3]int{3, 2, 5}, Kernel: [3]int{2, 3, 2}, Stride: [3]int{2, 3, 2}, Dilation: [3]int{1, 1, 1}},
		{N: 1, In: 6, Out: 5, Groups: 1, Size: [3]int{1, 4, 5}, Kernel: [3]int{1, 2, 2}, Stride: [3]int{1, 2, 2}, Dilation: [3]int{1, 1, 1}},
	}, convCases...)
	variants(t, func(t *testing.T) {
		for _, c := range cases {
			for d := range c.OutSize {
				c.OutSize[d] = (c.Size[d]-1)*c.Stride[d] - 2*c.Pad[d] + c.Dilation[d]*(c.Kernel[d]-1) + 1
			}
			if min(c.OutSize[0], c.OutSize[1], c.OutSize[2]) < 1 {
				continue
			}
			x, w := randoms(rng, c.N*c.In*volume(c.Size)), randoms(rng, c.In*c.Out/c.Groups*volume(c.Kernel))
			bias, pos := randoms(rng, c.Out), volume(c.OutSize)
			residual := randoms(rng, c.N*c.Out*pos)
			got, want := make([]float32, c.N*c.Out*pos), make([]float64, c.N*c.Out*pos)
			ConvTransposed(&c, widen(x), widen(w), widen(bias), want)
			for i, v := range want {
				want[i] = max(0, v+float64(residual[i]))
			}
			for _, p := range []*pool.Pool{nil, p} {
				TransposedNHWC(p, &c, PackTransposed(&c, w, false), toLast(x, c.N, c.In, volume(c.Size)), got,
					&Epilogue{ColBias: bias, Residual: toLast(residual, c.N, c.Out, pos), ResidualStep: c.Out, Act: Activation{Kind: ActReLU}})
				closeTo(t, fmt.Sprintf("%+v", c), toFirst(got, c.N, c.Out, pos), want, 1e-4)
			}
		}
	})
}

func BenchmarkConvNHWC(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, threads := range []int{1, 2} {
		p := pool.New(threads)
		defer p.Close()
		for _, c := range []Conv{
			conv2d(1, 3, 64, 1, 224, 224, 7, 7, 2, 3, 1), conv2d(1, 3, 32, 1, 224, 224, 3, 3, 2, 1, 1),
			conv2d(1, 64, 64, 1, 56, 56, 3, 3, 1, 1, 1), conv2d(1, 128, 128, 1, 28, 28, 3, 3, 1, 1, 1), conv2d(1, 256, 256, 1, 14, 14, 3, 3, 1, 1, 1),
			conv2d(1, 512, 512, 1, 7, 7, 3, 3, 1, 1, 1), conv2d(1, 128, 128, 1, 56, 56, 3, 3, 2, 1, 1), conv2d(1, 512, 512, 1, 14, 14, 3, 3, 2, 1, 1),
			conv2d(1, 256, 512, 1, 56, 56, 1, 1, 2, 0, 1), conv2d(1, 32, 32, 1, 256, 256, 3, 3, 1, 1, 1), conv2d(1, 64, 64, 1, 128, 128, 3, 3, 1, 1, 1),
			conv2d(1, 128, 128, 32, 28, 28, 3, 3, 1, 1, 1),
			conv2d(1, 96, 96, 96, 112, 112, 3, 3, 2, 1, 1), conv2d(1, 144, 144, 144, 56, 56, 3, 3, 1, 1, 1), conv2d(1, 16, 16, 16, 112, 112, 3, 3, 1, 1, 1),
			conv2d(1, 240, 240, 240, 28, 28, 5, 5, 1, 2, 1), conv2d(1, 672, 672, 672, 14, 14, 5, 5, 2, 2, 1), conv2d(1, 960, 960, 960, 7, 7, 5, 5, 1, 2, 1),
			conv2d(1, 96, 96, 96, 56, 56, 7, 7, 1, 3, 1), conv2d(1, 384, 384, 384, 14, 14, 7, 7, 1, 3, 1),
		} {
			x, w := randoms(rng, c.N*c.In*volume(c.Size)), packConv(&c, randoms(rng, c.Out*c.In/c.Groups*volume(c.Kernel)))
			out := make([]float32, c.N*c.Out*volume(c.OutSize))
			ep := &Epilogue{ColBias: randoms(rng, c.Out), Act: Activation{Kind: ActReLU}}
			b.Run(fmt.Sprintf("%dx%d-%d-g%d-k%d-s%d-t%d", c.Size[1], c.In, c.Out, c.Groups, c.Kernel[2], c.Stride[2], threads), func(b *testing.B) {
				benchFlops(b, p, 2*float64(len(out))*float64(c.In/c.Groups*volume(c.Kernel)), func() { ConvNHWC(p, &c, w, x, out, ep) })
			})
		}
	}
}

// BenchmarkConvCold goes through more weights than the caches hold, as a model does.
func BenchmarkConvCold(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, c := range []Conv{conv2d(1, 256, 256, 1, 14, 14, 3, 3, 1, 1, 1), conv2d(1, 512, 512, 1, 7, 7, 3, 3, 1, 1, 1), conv2d(1, 128, 128, 1, 28, 28, 3, 3, 1, 1, 1)} {
		var w []*PackedConv
		for range 192 << 20 / (4 * 9 * c.In * c.Out) {
			w = append(w, packConv(&c, randoms(rng, c.Out*c.In*9)))
		}
		x, out := randoms(rng, c.N*c.In*volume(c.Size)), make([]float32, c.N*c.Out*volume(c.OutSize))
		b.Run(fmt.Sprintf("%dx%d-%d-k%d", c.Size[1], c.In, c.Out, c.Kernel[2]), func(b *testing.B) {
			i := 0
			for b.Loop() {
				ConvNHWC(nil, &c, w[i%len(w)], x, out, nil)
				i++
			}
			flops := 2 * float64(len(out)) * float64(c.In*volume(c.Kernel))
			b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// Random geometries: sizes, strides, paddings, dilations, groups and epilogues in all combinations.
func TestConvNHWCRandom(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	p := pool.New(2)
	defer p.Close()
	acts := []Activation{{}, {Kind: ActReLU}, {Kind: ActClamp, Lo: -1, Hi: 2}, {Kind: ActSiLU}, {Kind: ActHardSwish}, {Kind: ActLeakyReLU, Lo: 0.1}}
	variants(t, func(t *testing.T) {
		for range 60 {
			c := randomConv(rng)
			if min(c.OutSize[0], c.OutSize[1], c.OutSize[2]) < 1 {
				continue
			}
			x, w := randoms(rng, c.N*c.In*volume(c.Size)), randoms(rng, c.Out*c.In/c.Groups*volume(c.Kernel))
			pos := volume(c.OutSize)
			n := c.N * c.Out * pos
			ep := &Epilogue{Act: acts[rng.Intn(len(acts))], ActFirst: rng.Intn(2) == 0}
			bias := make([]float32, c.Out)
			if rng.Intn(3) > 0 {
				bias = randoms(rng, c.Out)
				ep.ColBias = bias
			}
			sum, residual := make([]float64, n), make([]float32, n)
			ConvDirect(&c, widen(x), widen(w), widen(bias), sum)
			if rng.Intn(2) == 0 {
				residual = randoms(rng, n)
				ep.Residual, ep.ResidualStep = toLast(residual, c.N, c.Out, pos), c.Out
			}
			want := make([]float64, n)
			for i, v := range sum {
				var y [1]float32
				if ep.ActFirst {
					ep.Act.Apply(y[:], []float32{float32(v)})
					want[i] = float64(y[0] + residual[i])
				} else {
					ep.Act.Apply(y[:], []float32{float32(v) + residual[i]})
					want[i] = float64(y[0])
				}
			}
			got := make([]float32, n)
			if ep.Residual != nil && rng.Intn(2) == 0 { // the residual may be the output's own memory
				copy(got, ep.Residual)
				ep.Residual = got
			}
			ConvNHWC([]*pool.Pool{nil, p}[rng.Intn(2)], &c, packConv(&c, w), toLast(x, c.N, c.In, volume(c.Size)), got, ep)
			closeTo(t, fmt.Sprintf("%+v act %d first %v", c, ep.Act.Kind, ep.ActFirst), toFirst(got, c.N, c.Out, pos), want, 2e-4)
		}
	})
}

func randomConv(rng *rand.Rand) Conv {
	one := func(n int) int { return 1 + rng.Intn(n) }
	c := Conv{N: one(2), Groups: []int{1, 1, 1, 2, 4, 8}[rng.Intn(6)]}
	c.In, c.Out = c.Groups*one(20), c.Groups*one(20)
	switch rng.Intn(5) {
	case 0:
		c.Groups, c.Out = c.In, c.In
	case 1:
		c.In, c.Out, c.Groups = 16*one(4), 16*one(4), 1
	case 2:
		c.Out = c.In
	}
	for d := range 3 {
		c.Size[d], c.Kernel[d], c.Stride[d], c.Dilation[d] = one(18), one(4), one(3), one(2)
		if d == 0 && rng.Intn(4) > 0 {
			c.Size[d], c.Kernel[d] = 1, 1
		}
		c.Pad[d] = rng.Intn(c.Kernel[d] + 1)
	}
	if rng.Intn(4) == 0 {
		c.Kernel, c.Stride, c.Dilation, c.Pad = [3]int{1, 3, 3}, [3]int{1, 1, 1}, [3]int{1, 1, 1}, [3]int{0, rng.Intn(3), rng.Intn(2)}
	}
	c.outSize()
	return c
}
