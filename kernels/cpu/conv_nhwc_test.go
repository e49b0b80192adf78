package cpu

import (
	"fmt"
	"math/rand"
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
					ConvNHWC(p, &c, PackConv(&c, w), toLast(x, c.N, c.In, volume(c.Size)), got, ep)
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
	rng := rand.New(rand.NewSource(1))
	for _, c := range convCases {
		for d := range c.OutSize {
			c.OutSize[d] = (c.Size[d]-1)*c.Stride[d] - 2*c.Pad[d] + c.Dilation[d]*(c.Kernel[d]-1) + 1
		}
		if min(c.OutSize[0], c.OutSize[1], c.OutSize[2]) < 1 {
			continue
		}
		x, w := randoms(rng, c.N*c.In*volume(c.Size)), randoms(rng, c.In*c.Out/c.Groups*volume(c.Kernel))
		bias := randoms(rng, c.Out)
		pos := volume(c.OutSize)
		got, want := make([]float32, c.N*c.Out*pos), make([]float64, c.N*c.Out*pos)
		TransposedNHWC(nil, &c, PackTransposed(&c, w), toLast(x, c.N, c.In, volume(c.Size)), got, &Epilogue{ColBias: bias})
		ConvTransposed(&c, widen(x), widen(w), widen(bias), want)
		closeTo(t, fmt.Sprintf("%+v", c), toFirst(got, c.N, c.Out, pos), want, 1e-4)
	}
}
