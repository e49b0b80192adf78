package aten

import (
	"math"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// ramp is a tensor of numbers that differ.
func ramp(sizes ...int64) *Value {
	t := tensor.New(tensor.Float32, sizes...)
	for i, d := 0, tensor.Data[float32](t); i < len(d); i++ {
		d[i] = float32(math.Sin(float64(i)*1.7)) * 3
	}
	return FromTensor(t)
}

// An index that was expanded along the last dimension moves whole rows; the same index written out goes element by element.
func TestExpandedIndex(t *testing.T) {
	b := eager()
	ids, _ := tensor.FromSlice([]int64{3, 0, 3, 1, 3, 2}, 3, 2, 1)
	short := b.Call("expand", ids, []int{3, 2, 20})
	long := b.Call("contiguous", short)
	self, src := ramp(3, 4, 20), ramp(3, 2, 20)
	same := func(name string, x, y *Value) {
		t.Helper()
		g, w := tensor.Contiguous[float32](x.T), tensor.Contiguous[float32](y.T)
		for i := range w {
			if g[i] != w[i] {
				t.Fatalf("%s: element %d is %v by rows, %v one by one", name, i, g[i], w[i])
			}
		}
	}
	same("gather", b.Call("gather", self, 1, short), b.Call("gather", self, 1, long))
	same("scatter", b.Call("scatter.src", self, 1, short, src), b.Call("scatter.src", self, 1, long, src))
	same("scatter_add", b.Call("scatter_add", self, 1, short, src), b.Call("scatter_add", self, 1, long, src))
	for _, r := range []string{"sum", "prod", "amax", "amin", "mean"} {
		for _, include := range []bool{true, false} {
			same(r, b.Call("scatter_reduce.two", self, 1, short, src, r, Kw("include_self", include)),
				b.Call("scatter_reduce.two", self, 1, long, src, r, Kw("include_self", include)))
		}
	}
}

// Sums, means and softmax go by rows, by columns or element by element, as x lies in memory.
func TestReductionsInAnyLayout(t *testing.T) {
	b := eager()
	x := ramp(3, 18, 20)
	at := func(v *Value, i, j, k int) float64 {
		s := v.T.Strides()
		return float64(tensor.Data[float32](v.T)[int64(i)*s[0]+int64(j)*s[1]+int64(k)*s[2]])
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}} {
		back := make([]int, 3)
		for i, d := range order {
			back[d] = i
		}
		y := b.Call("permute", b.Call("contiguous", b.Call("permute", x, order)), back)
		for dim := range 3 {
			sum, mean := b.Call("sum.dim_IntList", y, []int{dim}, true), b.Call("mean.dim", y, []int{dim}, true)
			top := b.Call("amax", y, []int{dim}, true)
			p, l := b.Call("_softmax", y, dim, false), b.Call("_log_softmax", y, dim, false)
			for i := range 3 {
				for j := range 18 {
					for k := range 20 {
						n, s, e, m := 0.0, 0.0, 0.0, math.Inf(-1)
						for q := range y.T.Sizes()[dim] {
							c := [3]int{i, j, k}
							c[dim] = int(q)
							v := at(x, c[0], c[1], c[2])
							n, s, e, m = n+1, s+v, e+math.Exp(v), max(m, v)
						}
						c := [3]int{i, j, k}
						c[dim] = 0
						v := at(x, i, j, k)
						for _, w := range [][2]float64{{at(sum, c[0], c[1], c[2]), s}, {at(mean, c[0], c[1], c[2]), s / n}, {at(top, c[0], c[1], c[2]), m},
							{at(p, i, j, k), math.Exp(v) / e}, {at(l, i, j, k), v - math.Log(e)}} {
							if math.Abs(w[0]-w[1]) > 1e-5 {
								t.Fatalf("order %v, dim %d: %v, want %v", order, dim, w[0], w[1])
							}
						}
					}
				}
			}
		}
	}
}

// Extremes and their places, in any layout, with NaN and equal numbers: the first one counts.
func TestExtremesInAnyLayout(t *testing.T) {
	b := eager()
	x := ramp(3, 18, 20)
	d := tensor.Data[float32](x.T)
	for i := range d {
		d[i] = float32(int(d[i] * 2))
	}
	d[77], d[500], d[501] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}} {
		back := make([]int, 3)
		for i, d := range order {
			back[d] = i
		}
		y := b.Call("permute", b.Call("contiguous", b.Call("permute", x, order)), back)
		for dim := range 3 {
			for _, larger := range []bool{true, false} {
				name := map[bool]string{true: "max", false: "min"}[larger]
				got := b.CallN(name+".dim", y, dim)
				all := b.Call("a"+name, y, []int{dim})
				sizes := []int{3, 18, 20}
				n := sizes[dim]
				rest := append(append([]int{}, sizes[:dim]...), sizes[dim+1:]...)
				for i := range rest[0] {
					for j := range rest[1] {
						best, at := float32(0), -1
						for q := range n {
							c := append(append(append([]int{}, []int{i, j}[:dim]...), q), []int{i, j}[dim:]...)
							v := d[(c[0]*18+c[1])*20+c[2]]
							if at < 0 || best == best && (v != v || larger && v > best || !larger && v < best) {
								best, at = v, q
							}
						}
						p := int64(i)*got[0].T.Strides()[0] + int64(j)*got[0].T.Strides()[1]
						r := int64(i)*got[1].T.Strides()[0] + int64(j)*got[1].T.Strides()[1]
						u := int64(i)*all.T.Strides()[0] + int64(j)*all.T.Strides()[1]
						v, w := tensor.Data[float32](got[0].T)[p], tensor.Data[float32](all.T)[u]
						if !sameNumber(float64(v), float64(best)) || !sameNumber(float64(w), float64(best)) || tensor.Data[int64](got[1].T)[r] != int64(at) {
							t.Fatalf("%s, order %v, dim %d, place %d %d: %v and %v at %d, want %v at %d", name, order, dim, i, j, v, w, tensor.Data[int64](got[1].T)[r], best, at)
						}
					}
				}
			}
		}
	}
}

// Rows of a few bytes are copied crosswise.
func TestNarrowPieces(t *testing.T) {
	b := eager()
	x, y := ramp(50, 3), ramp(50, 2)
	for _, f := range []func(v *Value) *Value{func(v *Value) *Value { return v }, func(v *Value) *Value { return b.Call("to.dtype", v, tensor.Float64) },
		func(v *Value) *Value { return b.Call("gt.Scalar", v, 0) }} {
		got := b.Call("to.dtype", b.Call("cat", []*Value{f(x), f(y), f(x)}, 1), tensor.Float64)
		d := tensor.Contiguous[float64](got.T)
		for i := range 50 {
			for j := range 8 {
				src := f(x)
				k := j
				if j >= 3 && j < 5 {
					src, k = f(y), j-3
				} else if j >= 5 {
					k = j - 5
				}
				if want := src.T.Float(int64(i)*src.T.Sizes()[1] + int64(k)); d[i*8+j] != want {
					t.Fatalf("row %d, column %d: %v, want %v", i, j, d[i*8+j], want)
				}
			}
		}
	}
}
