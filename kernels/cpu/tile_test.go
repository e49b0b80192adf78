package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
)

// Every kernel of every set that the CPU has, at all widths, with every combination of steps behind the sums: against the portable
// kernel's formula in float64, with canaries around C.
func TestTiles(t *testing.T) {
	t.Run("F32", func(t *testing.T) { testTiles(t, tileSets32, 2e-5) })
	t.Run("F64", func(t *testing.T) { testTiles(t, tileSets64, 1e-13) })
}

func testTiles[T Float](t *testing.T, sets []*tileSet[T], tol float64) {
	rng := rand.New(rand.NewSource(1))
	for _, v := range sets[levelOf():] {
		for h := 1; h <= v.mr; h++ {
			for width := 1; width <= v.nr; width++ {
				for _, length := range []int{1, 2, 3, 4, 5, 9} {
					testTile(t, rng, v, h, width, length, 1+rng.Intn(3), rng.Intn(32), tol)
				}
			}
		}
	}
}

func testTile[T Float](t *testing.T, rng *rand.Rand, v *tileSet[T], h, width, length, segments, flags int, tol float64) {
	const pad = 40
	narrow := v.half != nil && width <= v.nr/2
	nr := v.nr
	if narrow {
		nr /= 2
	}
	numbers := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(rng.NormFloat64())
		}
		return x
	}
	ldc, ldr := width+3, width+1
	c, residual := numbers(2*pad+h*ldc), numbers(h*ldr)
	k := segments * length
	tl := &tile[T]{x: numbers(200), b: packedMemory[T](k * nr), c: c[pad:], bias: numbers(width), residual: residual, ldc: ldc, ldr: ldr, segments: segments,
		length: length, flags: flags, mask: columnMask[T](width), lo: -0.5, hi: 0.75, rows: h, width: width}
	for i := range k {
		copy(tl.b[i*nr:], numbers(width))
	}
	for range segments * v.mr {
		tl.offsets = append(tl.offsets, rng.Intn(190))
	}
	want := append([]T(nil), c...)
	for r := range h {
		for j := range width {
			s := 0.0
			for q := range k {
				s += float64(tl.x[tl.offsets[q/length*v.mr+r]+q%length]) * float64(tl.b[q*nr+j])
			}
			at := pad + r*ldc + j
			want[at] = tl.finish(T(s), c[at], r, j)
		}
	}
	v.fits(tl, narrow)
	for i, w := range want {
		if d := math.Abs(float64(c[i] - w)); !(d <= tol) {
			t.Fatalf("%s, %dx%d of %d, %d segments of %d, flags %05b: element %d is %v, want %v", v.name, h, width, nr, segments, length, flags, i-pad, c[i], w)
		}
	}
}

// NaN, infinities and denormals pass through the clamp as PyTorch's clamp lets them: NaN stays, infinities become the bounds.
func TestTileSpecialNumbers(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{nan, inf, -inf, 1e-42, -1e-42, 0, 3e38}
	for _, v := range tileSets32[levelOf():] {
		for h := 1; h <= v.mr; h++ {
			b := packedMemory[float32](v.nr)
			for i := range v.nr {
				b[i] = special[i%len(special)]
			}
			c := make([]float32, h*v.nr)
			tl := &tile[float32]{x: []float32{1}, offsets: make([]int, v.mr), b: b, c: c, ldc: v.nr, segments: 1, length: 1, flags: tileClamp,
				mask: columnMask[float32](v.nr), lo: 0, hi: inf, rows: h, width: v.nr}
			for _, hi := range []float32{inf, 6} {
				tl.hi = hi
				v.fits(tl, false)
				for i, g := range c {
					s := special[i%v.nr%len(special)]
					w := min(hi, max(0, s))
					if s != s {
						w = nan
					}
					if g != w && (g == g || w == w) {
						t.Fatalf("%s, %d rows: %v becomes %v, want %v", v.name, h, s, g, w)
					}
				}
			}
		}
	}
}

// BenchmarkTile runs one kernel on operands that stay in the first-level cache: what the loops above it could reach at most.
func BenchmarkTile(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, v := range tileSets32 {
		for _, h := range []int{1, 4, 6, 8, 10, 12} {
			if h > v.mr {
				continue
			}
			const k = 192
			t := &tile[float32]{x: randoms(rng, h*k), b: packedMemory[float32](k * v.nr), c: make([]float32, h*v.nr), ldc: v.nr, segments: 1, length: k, rows: h, width: v.nr, mask: columnMask[float32](v.nr)}
			for r := range h {
				t.offsets = append(t.offsets, r*k)
			}
			b.Run(fmt.Sprintf("%s-%dx%d", v.name, h, v.nr), func(b *testing.B) {
				for b.Loop() {
					for range 100 {
						v.run(t, false)
					}
				}
				b.ReportMetric(100*2*float64(h*v.nr*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
