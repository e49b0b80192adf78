package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// Depthwise convolutions with every width of filters and of images that the kernels know, edges of all kinds, numbers of channels around
// the vectors' lengths, and activations. What lies outside the input is NaN, so that nothing of it may be read.
func TestDepthwiseSlides(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	p := pool.New(3)
	defer p.Close()
	acts := []Activation{{}, {Kind: ActReLU}, {Kind: ActClamp, Lo: -1, Hi: 2}, {Kind: ActSiLU}, {Kind: ActHardSwish}, {Kind: ActTanh}}
	channels := []int{1, 7, 16, 17, 32, 33, 40, 48, 72}
	variants(t, func(t *testing.T) {
		for _, kernel := range []int{3, 5, 7} {
			for _, stride := range []int{1, 2} {
				for width := 1; width <= 19; width++ {
					ch := channels[rng.Intn(len(channels))]
					c := conv2d(1+rng.Intn(2), ch, ch, ch, 1+rng.Intn(9), width, kernel, kernel, stride, rng.Intn(kernel/2+1), 1)
					if c.outSize(); min(c.OutSize[1], c.OutSize[2]) < 1 {
						continue
					}
					testDepthwise(t, []*pool.Pool{nil, p}[rng.Intn(2)], rng, &c, acts[rng.Intn(len(acts))])
				}
			}
		}
	})
}

func testDepthwise(t *testing.T, p *pool.Pool, rng *rand.Rand, c *Conv, act Activation) {
	size, n := c.N*c.In*volume(c.Size), c.N*c.Out*volume(c.OutSize)
	x, w, bias := randoms(rng, size), randoms(rng, c.Out*volume(c.Kernel)), randoms(rng, c.Out)
	want := make([]float64, n)
	ConvDirect(c, widen(x), widen(w), widen(bias), want)
	for i, v := range want {
		var y [1]float32
		act.Apply(y[:], []float32{float32(v)})
		want[i] = float64(y[0])
	}
	const frame = 4096
	in := make([]float32, size+2*frame)
	for i := range in {
		in[i] = float32(math.NaN())
	}
	copy(in[frame:], toLast(x, c.N, c.In, volume(c.Size)))
	out := make([]float32, n+2*frame)
	for i := range out {
		out[i] = 7
	}
	ConvNHWC(p, c, packConv(c, w), in[frame:frame+size:frame+size], out[frame:frame+n:frame+n], &Epilogue{ColBias: bias, Act: act})
	name := fmt.Sprintf("%+v act %d", *c, act.Kind)
	closeTo(t, name, toFirst(out[frame:frame+n], c.N, c.Out, volume(c.OutSize)), want, 1e-4)
	for i, v := range out {
		if (i < frame || i >= frame+n) && v != 7 {
			t.Fatalf("%s: element %d of %d was written", name, i-frame, n)
		}
	}
}

// Convolutions of few channels read planes and channels that lie side by side.
func TestFewChannels(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	p := pool.New(2)
	defer p.Close()
	acts := []Activation{{}, {Kind: ActReLU}, {Kind: ActSiLU}, {Kind: ActHardSwish}, {Kind: ActTanh}}
	variants(t, func(t *testing.T) {
		for range 60 {
			in, kernel := 1+rng.Intn(4), 2+rng.Intn(6)
			c := conv2d(1+rng.Intn(2), in, []int{1, 5, 16, 17, 32, 33, 40, 64, 70}[rng.Intn(9)], 1, 1+rng.Intn(20), 1+rng.Intn(50), kernel, kernel, 1+rng.Intn(3), rng.Intn(kernel), 1)
			if min(c.OutSize[1], c.OutSize[2]) < 1 || !c.TakesPlanar() {
				continue
			}
			x, w, bias := randoms(rng, c.N*c.In*volume(c.Size)), randoms(rng, c.Out*c.In*volume(c.Kernel)), randoms(rng, c.Out)
			n := c.N * c.Out * volume(c.OutSize)
			sum, residual := make([]float64, n), randoms(rng, n)
			ConvDirect(&c, widen(x), widen(w), widen(bias), sum)
			ep := &Epilogue{ColBias: bias, Act: acts[rng.Intn(len(acts))]}
			if rng.Intn(2) == 0 {
				ep.Residual, ep.ResidualStep = toLast(residual, c.N, c.Out, volume(c.OutSize)), c.Out
			}
			for i, v := range sum {
				y := []float32{float32(v)}
				if ep.Residual != nil {
					y[0] += residual[i]
				}
				ep.Act.Apply(y, y)
				sum[i] = float64(y[0])
			}
			for _, c.Planar = range []bool{false, true} {
				in := x
				if !c.Planar {
					in = toLast(x, c.N, c.In, volume(c.Size))
				}
				got := make([]float32, n)
				ConvNHWC([]*pool.Pool{nil, p}[rng.Intn(2)], &c, packConv(&c, w), in, got, ep)
				closeTo(t, fmt.Sprintf("%+v", c), toFirst(got, c.N, c.Out, volume(c.OutSize)), sum, 1e-4)
			}
		}
	})
}

// Kernels move on behind the end of what they read and write; the garbage collector must not meet such addresses.
func TestDepthwiseWhileCollecting(t *testing.T) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	c := conv2d(1, 128, 128, 32, 28, 28, 3, 3, 1, 1, 1)
	w := packConv(&c, make([]float32, 128*4*9))
	for range 300 {
		ConvNHWC(nil, &c, w, make([]float32, 128*28*28), make([]float32, 128*28*28), nil)
	}
	close(stop)
	<-done
}
