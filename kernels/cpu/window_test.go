package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

var pools = []Pool2d{
	{Planes: 3, H: 12, W: 13, KernelH: 3, KernelW: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1},
	{Planes: 2, H: 8, W: 9, KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1},
	{Planes: 1, H: 15, W: 40, KernelH: 3, KernelW: 2, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 2, DilationW: 3},
	{Planes: 2, H: 7, W: 7, KernelH: 7, KernelW: 7, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1},
}

func TestPool2dAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, c := range pools {
			c.OutH = (c.H+2*c.PadH-c.DilationH*(c.KernelH-1)-1)/c.StrideH + 1
			c.OutW = (c.W+2*c.PadW-c.DilationW*(c.KernelW-1)-1)/c.StrideW + 1
			x := randoms(rng, c.Planes*c.H*c.W)
			x[5] = float32(math.NaN())
			n := c.Planes * c.OutH * c.OutW
			got, same, index := make([]float32, n), make([]float32, n), make([]int64, n)
			c.MaxF32(p, x, got, nil)
			c.MaxF32(p, x, same, index)
			want, mean := make([]float64, n), make([]float64, n)
			for _, pad := range []bool{false, true} {
				for i := range n {
					want[i], mean[i] = c.window(x, i, pad)
				}
				name := fmt.Sprintf("%+v", c)
				closeTo(t, "max "+name, got, want, 0)
				closeTo(t, "max with indices "+name, same, want, 0)
				for i, at := range index {
					if v := x[i/(c.OutH*c.OutW)*c.H*c.W+int(at)]; !sameBits(v, got[i]) {
						t.Fatalf("%s: index %d of window %d points at %v, want %v", name, at, i, v, got[i])
					}
				}
				if c.DilationH == 1 {
					avg := make([]float32, n)
					c.CountPad = pad
					c.AvgF32(p, x, avg)
					closeTo(t, "mean "+name, avg, mean, 1e-5)
				}
			}
		}
	})
}

// window is the definition of one output.
func (c *Pool2d) window(x []float32, i int, countPad bool) (top, mean float64) {
	plane, oy, ox := i/(c.OutH*c.OutW), i/c.OutW%c.OutH, i%c.OutW
	top = math.Inf(-1)
	sum, n := 0.0, 0
	for ky := range c.KernelH {
		for kx := range c.KernelW {
			y, z := oy*c.StrideH-c.PadH+ky*c.DilationH, ox*c.StrideW-c.PadW+kx*c.DilationW
			inside := y >= 0 && y < c.H && z >= 0 && z < c.W
			if inside {
				v := float64(x[(plane*c.H+y)*c.W+z])
				sum += v
				if v > top || v != v {
					top = v
				}
			}
			if inside || countPad && y < c.H+c.PadH && z < c.W+c.PadW {
				n++
			}
		}
	}
	return top, sum / float64(n)
}

// Values from torch.nn.functional.interpolate.
func TestResize2d(t *testing.T) {
	x := []float32{0, 1, 2, 3, 4, 5}
	variants(t, func(t *testing.T) {
		got := make([]float32, 20)
		r := Resize2d{Planes: 1, H: 2, W: 3, OutH: 4, OutW: 5, ScaleH: 0.5, ScaleW: 0.6}
		r.BilinearF32(nil, got, x)
		closeTo(t, "bilinear", got, bilinear, 1e-6)
		r.NearestF32(nil, got, x, false)
		closeTo(t, "nearest", got, []float64{0, 0, 1, 1, 2, 0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 3, 3, 4, 4, 5}, 0)
		r.NearestF32(nil, got, x, true)
		closeTo(t, "nearest-exact", got, []float64{0, 0, 1, 2, 2, 0, 0, 1, 2, 2, 3, 3, 4, 5, 5, 3, 3, 4, 5, 5}, 0)
		r.AlignCorners, r.ScaleH, r.ScaleW = true, 1.0/3, 0.5
		r.BilinearF32(nil, got, x)
		closeTo(t, "aligned bilinear", got, []float64{0, 0.5, 1, 1.5, 2, 1, 1.5, 2, 2.5, 3, 2, 2.5, 3, 3.5, 4, 3, 3.5, 4, 4.5, 5}, 1e-6)
	})
}

var bilinear = []float64{0, 0.4, 1, 1.6, 2, 0.75, 1.15, 1.75, 2.35, 2.75, 2.25, 2.65, 3.25, 3.85, 4.25, 3, 3.4, 4, 4.6, 5}

func TestTransposeBytes(t *testing.T) {
	for _, d := range [][3]int{{3, 0, 3}, {3, 1, 3}, {3, 2, 3}, {3, 50, 3}, {3, 9, 4}, {5, 40, 5}, {17, 33, 20}} {
		rows, cols, ldd := d[0], d[1], d[2]
		ldx := cols + 2
		x, got := randomBytes(rand.New(rand.NewSource(1)), rows*ldx), make([]uint8, cols*ldd+1)
		for i := range got {
			got[i] = 0xa5
		}
		TransposeU8(got, x, rows, cols, ldd, ldx)
		for at, v := range got {
			want := uint8(0xa5)
			if j, i := at/ldd, at%ldd; j < cols && i < rows {
				want = x[i*ldx+j]
			}
			if v != want {
				t.Fatalf("%v: byte %d is %d, want %d", d, at, v, want)
			}
		}
	}
}

func TestTranspose(t *testing.T) {
	for _, d := range [][2]int{{0, 3}, {1, 1}, {16, 16}, {17, 33}, {5, 40}, {8, 8}, {9, 64}, {70, 31}} {
		rows, cols := d[0], d[1]
		ldx, ldd := cols+2, rows+3
		x, got := randoms(rand.New(rand.NewSource(1)), rows*ldx), make([]float32, cols*ldd)
		FillF32(got, canary)
		TransposeF32(got, x, rows, cols, ldd, ldx)
		for j := range cols {
			for i := range ldd {
				want := float32(canary)
				if i < rows {
					want = x[i*ldx+j]
				}
				if got[j*ldd+i] != want {
					t.Fatalf("%v: (%d, %d) is %v, want %v", d, j, i, got[j*ldd+i], want)
				}
			}
		}
	}
}
