package cpu

import (
	"math"
	"testing"

	"github.com/x448/float16"
)

func TestHalvesBothWays(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	variants(t, func(t *testing.T) {
		wide, back := make([]float32, len(all)), make([]uint16, len(all))
		F16ToF32(wide, all)
		F32ToF16(back, wide)
		for i, h := range all {
			want := float16.Frombits(h).Float32()
			if !sameBits(wide[i], want) {
				t.Fatalf("half %#04x is %v, want %v", h, wide[i], want)
			}
			if want == want && back[i] != h || want != want && back[i]&0x7fff <= 0x7c00 {
				t.Fatalf("half %#04x comes back as %#04x", h, back[i])
			}
		}
		BF16ToF32(wide, all)
		F32ToBF16(back, wide)
		for i, h := range all {
			if want := math.Float32frombits(uint32(h) << 16); !sameBits(wide[i], want) {
				t.Fatalf("bfloat16 %#04x is %v, want %v", h, wide[i], want)
			}
			if nan := wide[i] != wide[i]; !nan && back[i] != h || nan && back[i] != 0x7fc0 {
				t.Fatalf("bfloat16 %#04x comes back as %#04x", h, back[i])
			}
		}
	})
}

// nearest is the 16-bit number nearest to v, of two equally near the even one, found by trying.
func nearest(v float32, from uint16, value func(h uint16) float64) uint16 {
	best, dist := from, math.Inf(1)
	for d := -2; d <= 2; d++ {
		h := uint16(int(from) + d)
		x := math.Abs(value(h) - float64(v))
		if x < dist || x == dist && h&1 == 0 {
			best, dist = h, x
		}
	}
	return best
}

func TestRoundingToHalves(t *testing.T) {
	var x []float32
	for i := uint64(0); i < 1<<32; i += 40009 {
		v := math.Float32frombits(uint32(i))
		x = append(x, v)
	}
	for h := range 1 << 16 { // halfway between two halves, and beside
		lo, hi := float16.Frombits(uint16(h)).Float32(), float16.Frombits(uint16(h+1)).Float32()
		mid := (lo + hi) / 2
		x = append(x, mid, math.Nextafter32(mid, 0), math.Nextafter32(mid, 1e38))
		m := math.Float32frombits(uint32(h)<<16 | 0x8000)
		x = append(x, m, math.Nextafter32(m, 0), math.Nextafter32(m, 1e38))
	}
	variants(t, func(t *testing.T) {
		half, brain := make([]uint16, len(x)), make([]uint16, len(x))
		F32ToF16(half, x)
		F32ToBF16(brain, x)
		for i, v := range x {
			if v != v {
				if half[i]&0x7fff <= 0x7c00 || brain[i] != 0x7fc0 {
					t.Fatalf("NaN %#x becomes %#04x, %#04x", math.Float32bits(v), half[i], brain[i])
				}
				continue
			}
			if want := float16.Fromfloat32(v).Bits(); half[i] != want {
				t.Fatalf("%v becomes half %#04x, want %#04x", v, half[i], want)
			}
			if math.Abs(float64(v)) < 1e38 && math.Abs(float64(v)) > 1e-37 {
				want := nearest(v, uint16(math.Float32bits(v)>>16), func(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) })
				if brain[i] != want {
					t.Fatalf("%v becomes bfloat16 %#04x, want %#04x", v, brain[i], want)
				}
			}
		}
	})
}

func TestCastLengths(t *testing.T) {
	variants(t, func(t *testing.T) {
		for n := range 40 {
			i32, u8, f64, f32 := make([]int32, n), make([]uint8, n), make([]float64, n), make([]float32, n)
			for i := range n {
				i32[i], u8[i], f64[i], f32[i] = int32(i*123456789-7), uint8(i*77), float64(i)*0.1-1, float32(i)/3
			}
			castFrame(t, n, func(d []float32) { I32ToF32(d, i32) }, func(i int) float32 { return float32(i32[i]) })
			castFrame(t, n, func(d []float32) { U8ToF32(d, u8) }, func(i int) float32 { return float32(u8[i]) })
			castFrame(t, n, func(d []float32) { F64ToF32(d, f64) }, func(i int) float32 { return float32(f64[i]) })
			wide := make([]float64, n+1)
			wide[n] = canary
			F32ToF64(wide[:n], f32)
			for i, v := range f32 {
				if wide[i] != float64(v) {
					t.Fatalf("element %d is %v, want %v", i, wide[i], v)
				}
			}
			if wide[n] != canary {
				t.Fatalf("%d elements: one too many was written", n)
			}
		}
	})
}

func castFrame(t *testing.T, n int, f func(d []float32), want func(i int) float32) {
	t.Helper()
	d := make([]float32, n+9)
	for i := range d {
		d[i] = canary
	}
	f(d[:n])
	for i, v := range d {
		if w := float32(canary); i < n && v != want(i) || i >= n && v != w {
			t.Fatalf("%d elements: element %d is %v", n, i, v)
		}
	}
}
