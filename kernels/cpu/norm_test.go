package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

func TestNormsAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, d := range [][2]int{{1, 1}, {3, 7}, {5, 8}, {40, 33}, {2, 1000}, {3, 4097}} {
			rows, n := d[0], d[1]
			x, w, b := randoms(rng, rows*n), randoms(rng, n), randoms(rng, n)
			AddScalarF32(x, x, 3)
			got, mean, rstd := make([]float32, rows*n), make([]float32, rows), make([]float32, rows)
			check := func(name string, f func(row []float64, out []float64)) {
				t.Helper()
				want := make([]float64, rows*n)
				for r := range rows {
					f(widen(x[r*n:(r+1)*n]), want[r*n:(r+1)*n])
				}
				closeTo(t, fmt.Sprint(name, d), got, want, 2e-5)
			}
			SoftmaxF32(p, got, x, rows, n)
			check("softmax", func(row, out []float64) {
				lse := logSumExp(row)
				for i, v := range row {
					out[i] = math.Exp(v - lse)
				}
			})
			LogSoftmaxF32(p, got, x, rows, n)
			check("log_softmax", func(row, out []float64) {
				lse := logSumExp(row)
				for i, v := range row {
					out[i] = v - lse
				}
			})
			LayerNormF32(p, got, x, w, b, rows, n, 1e-5, mean, rstd)
			check("layer_norm", func(row, out []float64) {
				m, v := moments(row)
				for i, x := range row {
					out[i] = (x-m)/math.Sqrt(v+1e-5)*float64(w[i]) + float64(b[i])
				}
			})
			if m, v := moments(widen(x[:n])); math.Abs(float64(mean[0])-m) > 1e-5 || math.Abs(float64(rstd[0])*math.Sqrt(v+1e-5)-1) > 1e-5 {
				t.Errorf("layer_norm %v: mean %v, rstd %v; want %v, %v", d, mean[0], rstd[0], m, 1/math.Sqrt(v+1e-5))
			}
			RMSNormF32(p, got, x, w, rows, n, 1e-6)
			check("rms_norm", func(row, out []float64) {
				s := 0.0
				for _, v := range row {
					s += v * v
				}
				for i, x := range row {
					out[i] = x / math.Sqrt(s/float64(n)+1e-6) * float64(w[i])
				}
			})
		}
	})
}

func logSumExp(x []float64) float64 {
	m, s := x[0], 0.0
	for _, v := range x {
		m = max(m, v)
	}
	for _, v := range x {
		s += math.Exp(v - m)
	}
	return m + math.Log(s)
}

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

func TestGroupNormAndScaleShift(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	const n, c, hw, groups = 2, 6, 150, 3
	x, w, b := randoms(rng, n*c*hw), randoms(rng, c), randoms(rng, c)
	got, want := make([]float32, len(x)), make([]float64, len(x))
	const group = c / groups * hw
	for g := range n * groups {
		m, v := moments(widen(x[g*group : (g+1)*group]))
		for i := range group {
			ch := (g*group + i) / hw % c
			want[g*group+i] = (float64(x[g*group+i])-m)/math.Sqrt(v+1e-5)*float64(w[ch]) + float64(b[ch])
		}
	}
	GroupNormF32(nil, got, x, w, b, n, c, hw, groups, 1e-5, nil, nil)
	closeTo(t, "group_norm", got, want, 1e-5)
	last, wantLast := make([]float32, len(x)), make([]float64, len(x))
	for i := range x {
		at := (i/(c*hw)*hw+i%hw)*c + i/hw%c
		last[at], wantLast[at] = x[i], want[i]
	}
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		got, mean, rstd := make([]float32, len(x)), make([]float32, n*groups), make([]float32, n*groups)
		GroupNormNHWCF32(p, got, last, w, b, n, c, hw, groups, 1e-5, mean, rstd)
		closeTo(t, "group_norm with channels last", got, wantLast, 1e-5)
		for g := range mean {
			m, v := moments(widen(x[g*group : (g+1)*group]))
			closeTo(t, "statistics", []float32{mean[g], rstd[g]}, []float64{m, 1 / math.Sqrt(v+1e-5)}, 1e-5)
		}
	})
	for i := range want {
		want[i] = float64(x[i])*float64(w[i/hw%c]) + float64(b[i/hw%c])
	}
	ScaleShiftF32(nil, got, x, w, b, n, c, hw)
	closeTo(t, "scale and shift", got, want, 1e-6)
}

// A row of -Inf has no softmax; nor has one with +Inf. Values from torch.softmax.
func TestSoftmaxOfInfinities(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	variants(t, func(t *testing.T) {
		for _, c := range []struct{ x, want []float64 }{
			{[]float64{-inf, -inf}, []float64{nan, nan}},
			{[]float64{-inf, 0, -inf}, []float64{0, 1, 0}},
			{[]float64{inf, 0}, []float64{nan, nan}},
			{[]float64{1, nan}, []float64{nan, nan}},
		} {
			x := make([]float32, len(c.x))
			F64ToF32(x, c.x)
			SoftmaxF32(nil, x, x, 1, len(x))
			closeTo(t, fmt.Sprint("softmax of ", c.x), x, c.want, 0)
		}
	})
}

// With channels last, several positions make a row where there are few channels.
func TestGroupNormOfFewChannels(t *testing.T) {
	for _, s := range [][3]int{{8, 48, 8}, {6, 37, 3}, {2, 1024, 1}, {512, 6, 32}, {1, 640, 1}, {3, 130, 3}} {
		c, hw, groups := s[0], s[1], s[2]
		rng := rand.New(rand.NewSource(5))
		x, w, b := randoms(rng, 2*c*hw), randoms(rng, c), randoms(rng, c)
		want, last, got := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
		GroupNormF32(nil, want, x, w, b, 2, c, hw, groups, 1e-5, nil, nil)
		place := func(i int) int { return (i/(c*hw)*hw+i%hw)*c + i/hw%c }
		for i := range x {
			last[place(i)] = x[i]
		}
		variants(t, func(t *testing.T) {
			GroupNormNHWCF32(nil, got, last, w, b, 2, c, hw, groups, 1e-5, nil, nil)
			for i := range want {
				if g := got[place(i)]; math.Abs(float64(g-want[i])) > 1e-5*(1+math.Abs(float64(want[i]))) {
					t.Fatalf("%v: element %d is %v, want %v", s, i, g, want[i])
				}
			}
		})
	}
}

func TestSoftmaxOfColumns(t *testing.T) {
	const n, step = 5, 90
	rng := rand.New(rand.NewSource(3))
	x := randoms(rng, n*step)
	x[7] = float32(math.Inf(-1))
	for _, log := range []bool{false, true} {
		variants(t, func(t *testing.T) {
			got := append([]float32(nil), x...)
			SoftmaxColumnsF32(got[2:], got[2:], n, step, 70, log)
			for c := range step {
				sum := 0.0
				for r := range n {
					sum += math.Exp(float64(x[r*step+c]))
				}
				for r := range n {
					want := math.Exp(float64(x[r*step+c])) / sum
					if log {
						want = float64(x[r*step+c]) - math.Log(sum)
					}
					if c < 2 || c >= 72 {
						want = float64(x[r*step+c])
					}
					if g := float64(got[r*step+c]); !(math.Abs(g-want) <= 1e-6*(1+math.Abs(want))) && g != want {
						t.Errorf("log %v: element %d of column %d is %v, want %v", log, r, c, g, want)
					}
				}
			}
		})
	}
}

func BenchmarkLayerNormSmall(b *testing.B) {
	for _, s := range [][2]int{{500, 64}, {1600, 96}, {128, 384}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			x, w := make([]float32, s[0]*s[1]), make([]float32, s[1])
			for i := range x {
				x[i] = float32(i % 13)
			}
			b.SetBytes(int64(8 * len(x)))
			for b.Loop() {
				LayerNormF32(nil, x, x, w, w, s[0], s[1], 1e-5, nil, nil)
			}
		})
	}
}
