package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

func TestQuantizeAndBack(t *testing.T) {
	variants(t, func(t *testing.T) {
		x := append(inputs(500), 0.5, 1.5, -2.5, 127.5, 1e30, -1e30)
		for _, q := range []QuantTo{{1, 0, 0, 255}, {1 / 0.037, 126, 0, 255}, {3, -7, -128, 127}, {100, 3, 5, 200}} {
			for n := range len(x) {
				if n > 70 && n < len(x)-1 {
					continue
				}
				got := make([]uint8, n+2)
				got[n], got[n+1] = 0xa5, 0xa5
				QuantizeF32(got[:n], x[:n], q)
				for i, v := range x[:n] {
					want := min(max(math.RoundToEven(float64(v*q.Inv))+float64(q.Zero), float64(q.Min)), float64(q.Max))
					if v != v {
						want = 0
					}
					if got[i] != uint8(int(want)) {
						t.Fatalf("%+v of %v is %d, want %v", q, v, got[i], want)
					}
				}
				if got[n] != 0xa5 {
					t.Fatalf("wrote beside %d", n)
				}
			}
		}
		bytes, back := make([]uint8, 256+7), make([]float32, 256+7)
		for i := range bytes {
			bytes[i] = uint8(i)
		}
		for _, q := range []Quant{{0.25, 100, false}, {0.5, -3, true}} {
			DequantizeF32(back, bytes, q)
			for i, b := range bytes {
				v := int32(b)
				if q.Signed {
					v = int32(int8(b))
				}
				if want := float32(v-q.Zero) * q.Scale; back[i] != want {
					t.Fatalf("%+v: %d stands for %v, got %v", q, b, want, back[i])
				}
			}
		}
	})
}

// quantConvs are windows, strides, paddings and sizes on both sides of what kernels compute at once.
func quantConvs() []*Conv {
	var all []*Conv
	for _, c := range []Conv{
		{N: 1, In: 4, Out: 1, Size: [3]int{1, 1, 1}, Kernel: [3]int{1, 1, 1}},
		{N: 2, In: 7, Out: 70, Size: [3]int{1, 5, 9}, Kernel: [3]int{1, 1, 1}},
		{N: 1, In: 3, Out: 65, Size: [3]int{1, 11, 12}, Kernel: [3]int{1, 7, 7}, Pad: [3]int{0, 3, 3}, Stride: [3]int{1, 2, 2}},
		{N: 2, In: 64, Out: 33, Size: [3]int{1, 6, 5}, Kernel: [3]int{1, 3, 3}, Pad: [3]int{0, 1, 1}, Dilation: [3]int{1, 2, 1}},
		{N: 1, In: 130, Out: 64, Size: [3]int{1, 14, 14}, Kernel: [3]int{1, 1, 1}, Stride: [3]int{1, 2, 2}},
		{N: 1, In: 40, Out: 100, Size: [3]int{1, 1, 17}, Kernel: [3]int{1, 1, 1}},
		{N: 2, In: 37, Out: 37, Groups: 37, Size: [3]int{1, 6, 7}, Kernel: [3]int{1, 3, 3}, Pad: [3]int{0, 1, 1}, Stride: [3]int{1, 2, 1}},
		{N: 1, In: 64, Out: 64, Groups: 64, Size: [3]int{1, 9, 9}, Kernel: [3]int{1, 5, 5}, Pad: [3]int{0, 2, 2}},
		{N: 3, In: 24, Out: 72, Size: [3]int{1, 7, 7}, Kernel: [3]int{1, 3, 3}, Pad: [3]int{0, 1, 1}},
		{N: 1, In: 64, Out: 130, Size: [3]int{1, 1, 16}, Kernel: [3]int{1, 1, 1}},
		{N: 1, In: 72, Out: 32, Size: [3]int{1, 1, 33}, Kernel: [3]int{1, 1, 1}},
		{N: 2, In: 128, Out: 64, Size: [3]int{1, 4, 5}, Kernel: [3]int{1, 3, 2}},
		{N: 1, In: 16, Out: 96, Size: [3]int{1, 13, 20}, Kernel: [3]int{1, 3, 5}, Pad: [3]int{0, 1, 2}, Stride: [3]int{1, 3, 2}},
		{N: 1, In: 65, Out: 20, Size: [3]int{1, 9, 11}, Kernel: [3]int{1, 2, 3}, Pad: [3]int{0, 0, 2}, Stride: [3]int{1, 1, 3}, Dilation: [3]int{1, 3, 2}},
	} {
		c.Groups = max(c.Groups, 1)
		for i := range 3 {
			c.Stride[i], c.Dilation[i] = max(c.Stride[i], 1), max(c.Dilation[i], 1)
			c.OutSize[i] = (c.Size[i]+2*c.Pad[i]-c.Dilation[i]*(c.Kernel[i]-1)-1)/c.Stride[i] + 1
		}
		all = append(all, &c)
	}
	return all
}

func TestQuantConvAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, c := range quantConvs() {
			for mode := range 16 {
				checkQuantConv(t, rng, p, c, mode)
			}
		}
	})
}

// TestQuantConvVariantsAgree compares what the instruction sets make of scales at random, bit for bit: all fuse the multiplications
// with the additions.
func TestQuantConvVariantsAgree(t *testing.T) {
	type key struct{ conv, mode int }
	want, wantFloat := map[key][]uint8{}, map[key][]float32{}
	variants(t, func(t *testing.T) {
		rng := rand.New(rand.NewSource(2))
		for i, c := range quantConvs() {
			x, w := randomBytes(rng, c.N*volume(c.Size)*c.In), make([]int8, c.Out*c.In/c.Groups*volume(c.Kernel))
			for i := range w {
				w[i] = int8(rng.Intn(256) - 128)
			}
			n := c.N * volume(c.OutSize) * c.Out
			scale, bias, residual := make([]float32, c.Out), make([]float32, c.Out), randomBytes(rng, n)
			for i := range scale {
				scale[i], bias[i] = rng.Float32()*1e-4, rng.Float32()-0.5
			}
			packed := PackQuantConv(c, w)
			for mode := range 6 {
				ep := &QuantEpilogue{Scale: scale, Bias: bias, Lo: -0.3, Hi: 1.7, Out: make([]uint8, n), To: QuantTo{Inv: 61.3, Zero: 31, Min: 2, Max: 250}}
				if mode&1 != 0 {
					ep.Residual, ep.Of = residual, Quant{Scale: 0.0123, Zero: 5, Signed: mode > 1}
				}
				if mode > 1 {
					ep.To = QuantTo{Inv: 47.1, Zero: -12, Min: -128, Max: 127}
				}
				if mode > 3 {
					ep.Float = make([]float32, n)
				}
				packed.Forward(nil, c, x, Quant{Scale: 1, Zero: 9, Signed: mode == 2}, ep)
				k := key{i, mode}
				if want[k] == nil {
					want[k], wantFloat[k] = ep.Out, ep.Float
				}
				if !slices.Equal(want[k], ep.Out) || !slices.Equal(wantFloat[k], ep.Float) {
					t.Errorf("%+v, mode %d differs", *c, mode)
				}
			}
		}
	})
}

func randomBytes(rng *rand.Rand, n int) []uint8 {
	b := make([]uint8, n)
	rng.Read(b)
	return b
}

// checkQuantConv goes through signed inputs (mode 1), residuals (2), float results (4), an activation (8). All scales are powers of two, so that the
// definition in float64 rounds the same.
func checkQuantConv(t *testing.T, rng *rand.Rand, p *pool.Pool, c *Conv, mode int) {
	t.Helper()
	pos, taps := volume(c.OutSize), volume(c.Kernel)
	x, w := randomBytes(rng, c.N*volume(c.Size)*c.In), make([]int8, c.Out*c.In/c.Groups*taps)
	for i := range w {
		w[i] = int8(rng.Intn(256) - 128)
	}
	from := Quant{Scale: 0.5, Zero: 17, Signed: mode&1 != 0}
	ep := &QuantEpilogue{Scale: make([]float32, c.Out), Bias: make([]float32, c.Out), Lo: 0, Hi: float32(math.Inf(1)),
		To: QuantTo{Inv: 0.125, Zero: 3, Min: 0, Max: 255}, Out: make([]uint8, c.N*pos*c.Out+1), Of: Quant{Scale: 2, Zero: -9, Signed: true}}
	for i := range ep.Scale {
		ep.Scale[i], ep.Bias[i] = float32(math.Ldexp(1, -9-rng.Intn(3))), float32(rng.Intn(64)-32)
	}
	if mode&2 != 0 {
		ep.Residual = randomBytes(rng, c.N*pos*c.Out)
		ep.Lo = float32(math.Inf(-1))
		ep.To.Min, ep.To.Max, ep.To.Zero = -128, 127, -5
	}
	if mode&4 != 0 {
		ep.Float = make([]float32, c.N*pos*c.Out)
	}
	if mode&8 != 0 {
		ep.Act = Activation{Kind: ActLeakyReLU, Lo: 0.25}
	}
	ep.Out[c.N*pos*c.Out] = 0xa5
	PackQuantConv(c, w).Forward(p, c, x, from, ep)
	if ep.Out[c.N*pos*c.Out] != 0xa5 {
		t.Fatalf("%+v wrote beside its output", c)
	}
	num := func(b uint8, q Quant) int {
		if q.Signed {
			return int(int8(b)) - int(q.Zero)
		}
		return int(b) - int(q.Zero)
	}
	for i := range c.N * pos {
		n, oh, ow := i/pos, i%pos/c.OutSize[2], i%c.OutSize[2]
		for o := range c.Out {
			sum := 0
			for tap := range taps {
				y, z := oh*c.Stride[1]-c.Pad[1]+tap/c.Kernel[2]*c.Dilation[1], ow*c.Stride[2]-c.Pad[2]+tap%c.Kernel[2]*c.Dilation[2]
				if y < 0 || z < 0 || y >= c.Size[1] || z >= c.Size[2] {
					continue
				}
				inG := c.In / c.Groups
				for k := range inG {
					from0 := o / (c.Out / c.Groups) * inG
					sum += num(x[((n*c.Size[1]+y)*c.Size[2]+z)*c.In+from0+k], from) * int(w[(o*inG+k)*taps+tap])
				}
			}
			want := float32(sum)*ep.Scale[o] + ep.Bias[o]
			at := i*c.Out + o
			if ep.Residual != nil {
				want += float32(num(ep.Residual[at], ep.Of)) * ep.Of.Scale
			}
			want = max(want, ep.Lo)
			if mode&8 != 0 && want < 0 {
				want *= 0.25
			}
			if ep.Float != nil {
				if ep.Float[at] != want {
					t.Fatalf("%+v, mode %d: (%d, %d) is %v, want %v", c, mode, i, o, ep.Float[at], want)
				}
				continue
			}
			if q := uint8(ep.To.one(want)); ep.Out[at] != q {
				t.Fatalf("%+v, mode %d: (%d, %d) is %d, want %d", c, mode, i, o, ep.Out[at], q)
			}
		}
	}
}

func TestMaxPoolBytes(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, c := range []*Conv{
		{N: 2, In: 70, Size: [3]int{1, 7, 6}, Kernel: [3]int{1, 3, 3}, Stride: [3]int{1, 2, 2}, Pad: [3]int{0, 1, 1}, Dilation: [3]int{1, 1, 1}, OutSize: [3]int{1, 4, 3}},
		{N: 1, In: 64, Size: [3]int{1, 9, 20}, Kernel: [3]int{1, 2, 3}, Stride: [3]int{1, 1, 1}, Pad: [3]int{0, 0, 1}, Dilation: [3]int{1, 3, 2}, OutSize: [3]int{1, 6, 18}},
		{N: 3, In: 5, Size: [3]int{1, 4, 4}, Kernel: [3]int{1, 2, 2}, Stride: [3]int{1, 2, 2}, Dilation: [3]int{1, 1, 1}, OutSize: [3]int{1, 2, 2}},
	} {
		variants(t, func(t *testing.T) { checkMaxPool(t, rng, c) })
	}
}

func checkMaxPool(t *testing.T, rng *rand.Rand, c *Conv) {
	for _, signed := range []bool{false, true} {
		h, w, oh, ow := c.Size[1], c.Size[2], c.OutSize[1], c.OutSize[2]
		n := c.N * oh * ow * c.In
		x, out := randomBytes(rng, c.N*h*w*c.In), make([]uint8, n+1)
		out[n] = 0xa5
		MaxPoolNHWCU8(nil, c, x, out, signed)
		if out[n] != 0xa5 {
			t.Fatal("wrote beside its output")
		}
		key := func(b uint8) int {
			if signed {
				return int(int8(b))
			}
			return int(b)
		}
		for i := range n {
			img, y, z, ch := i/c.In/(oh*ow), i/c.In/ow%oh, i/c.In%ow, i%c.In
			want := math.MinInt
			for tap := range volume(c.Kernel) {
				y, z := y*c.Stride[1]-c.Pad[1]+tap/c.Kernel[2]*c.Dilation[1], z*c.Stride[2]-c.Pad[2]+tap%c.Kernel[2]*c.Dilation[2]
				if y >= 0 && z >= 0 && y < h && z < w {
					want = max(want, key(x[((img*h+y)*w+z)*c.In+ch]))
				}
			}
			if key(out[i]) != want {
				t.Fatalf("element %d of %+v is %d, want %d", i, *c, key(out[i]), want)
			}
		}
	}
}

func BenchmarkQuantLinear(b *testing.B) {
	for _, d := range [][3]int{{1, 768, 768}, {1, 2048, 1000}, {5, 70, 130}, {32, 768, 3072}, {128, 768, 768}} {
		m, k, n := d[0], d[1], d[2]
		one, rows := [3]int{1, 1, 1}, [3]int{1, 1, m}
		c := &Conv{N: 1, In: k, Out: n, Groups: 1, Size: rows, OutSize: rows, Kernel: one, Stride: one, Dilation: one}
		p, x := PackQuantConv(c, make([]int8, k*n)), make([]uint8, m*k)
		ep := &QuantEpilogue{Scale: make([]float32, n), Hi: 1e30, Float: make([]float32, m*n)}
		b.Run(fmt.Sprint(m, k, n), func(b *testing.B) {
			for b.Loop() {
				p.Forward(nil, c, x, Quant{1, 3, false}, ep)
			}
			b.ReportMetric(2*float64(m*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
	}
}

func BenchmarkQuantConv(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, c := range []Conv{
		{In: 64, Out: 64, Size: [3]int{1, 56, 56}, Kernel: [3]int{1, 3, 3}, Pad: [3]int{0, 1, 1}},
		{In: 256, Out: 64, Size: [3]int{1, 56, 56}, Kernel: [3]int{1, 1, 1}},
		{In: 1024, Out: 256, Size: [3]int{1, 14, 14}, Kernel: [3]int{1, 1, 1}},
		{In: 512, Out: 512, Size: [3]int{1, 7, 7}, Kernel: [3]int{1, 3, 3}, Pad: [3]int{0, 1, 1}},
	} {
		c.N, c.Groups, c.Stride, c.Dilation, c.OutSize = 1, 1, [3]int{1, 1, 1}, [3]int{1, 1, 1}, c.Size
		w := make([]int8, c.Out*c.In*volume(c.Kernel))
		for i := range w {
			w[i] = int8(rng.Intn(256) - 128)
		}
		x := randomBytes(rng, volume(c.Size)*c.In)
		ep := &QuantEpilogue{Scale: make([]float32, c.Out), Hi: 1e30, To: QuantTo{1, 0, 0, 255}, Out: make([]uint8, volume(c.OutSize)*c.Out)}
		p := PackQuantConv(&c, w)
		b.Run(fmt.Sprint(c.In, c.Out, c.Size[1], c.Kernel[1]), func(b *testing.B) {
			for b.Loop() {
				p.Forward(nil, &c, x, Quant{1, 0, false}, ep)
			}
			b.ReportMetric(2*float64(len(w))*float64(volume(c.OutSize))*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
	}
}
