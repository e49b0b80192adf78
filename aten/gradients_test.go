package aten_test

import (
	"math"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

func random(r *rand.Rand, sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Float64, sizes...)
	for i := range tensor.Data[float64](t) {
		tensor.Data[float64](t)[i] = r.NormFloat64()
	}
	return t
}

func call(t *testing.T, name string, args ...any) []*tensor.Tensor {
	t.Helper()
	out, err := aten.Call(name, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var ts []*tensor.Tensor
	for _, v := range out {
		if x, _ := v.(*aten.Value); x != nil {
			ts = append(ts, x.T)
		} else {
			ts = append(ts, nil)
		}
	}
	return ts
}

func dot(x, y *tensor.Tensor) float64 {
	s := 0.0
	for i, v := range tensor.Contiguous[float64](x) {
		s += v * tensor.Contiguous[float64](y)[i]
	}
	return s
}

// TestLinearBackward holds the gradients of linear functions against their definition: <g, f(x)> = <f'(g), x>.
func TestLinearBackward(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, c := range []struct {
		name    string
		in, out []int64
		args    []any
	}{
		{"upsample_nearest1d", []int64{3}, []int64{5}, nil},
		{"_upsample_nearest_exact1d", []int64{9}, []int64{5}, nil},
		{"upsample_nearest2d", []int64{3, 7}, []int64{5, 4}, nil},
		{"_upsample_nearest_exact2d", []int64{3, 7}, []int64{5, 4}, nil},
		{"upsample_nearest3d", []int64{2, 3, 7}, []int64{3, 5, 4}, nil},
		{"_upsample_nearest_exact3d", []int64{2, 3, 7}, []int64{3, 5, 4}, nil},
		{"upsample_linear1d", []int64{3}, []int64{8}, []any{false}},
		{"upsample_linear1d", []int64{3}, []int64{8}, []any{true}},
		{"upsample_bilinear2d", []int64{3, 7}, []int64{5, 4}, []any{false}},
		{"upsample_bicubic2d", []int64{5, 7}, []int64{9, 4}, []any{true}},
		{"upsample_trilinear3d", []int64{2, 3, 7}, []int64{3, 5, 4}, []any{false}},
	} {
		x, g := random(r, append([]int64{2, 3}, c.in...)...), random(r, append([]int64{2, 3}, c.out...)...)
		y := call(t, c.name, append([]any{x, c.out}, c.args...)...)[0]
		back := call(t, c.name+"_backward", append([]any{g, c.out, x.Sizes()}, c.args...)...)[0]
		if a, b := dot(g, y), dot(back, x); math.Abs(a-b) > 1e-10*(1+math.Abs(a)) {
			t.Errorf("%s: <g, f(x)> = %v, <f'(g), x> = %v", c.name, a, b)
		}
	}
}

// TestPoolBackward does the same for poolings, which are linear near any x without ties.
func TestPoolBackward(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	check := func(name string, x, g, y, back *tensor.Tensor) {
		t.Helper()
		if a, b := dot(g, y), dot(back, x); math.Abs(a-b) > 1e-10*(1+math.Abs(a)) {
			t.Errorf("%s: <g, f(x)> = %v, <f'(g), x> = %v", name, a, b)
		}
	}
	x := random(r, 2, 3, 9, 8)
	two, one := []int64{2, 2}, []int64{1, 1}
	m := call(t, "max_pool2d_with_indices", x, []int64{3, 2}, two, one)
	g := random(r, m[0].Sizes()...)
	check("max_pool2d", x, g, m[0], call(t, "max_pool2d_with_indices_backward", g, x, []int64{3, 2}, two, one, one, false, m[1])[0])
	check("max_unpool2d", g, x, call(t, "max_pool2d_with_indices_backward", g, x, []int64{3, 2}, two, one, one, false, m[1])[0], m[0])
	for _, pad := range []bool{false, true} {
		y := call(t, "avg_pool2d", x, []int64{3, 2}, two, one, true, pad)[0]
		g = random(r, y.Sizes()...)
		check("avg_pool2d", x, g, y, call(t, "avg_pool2d_backward", g, x, []int64{3, 2}, two, one, true, pad, nil)[0])
	}
	y := call(t, "_adaptive_avg_pool2d", x, []int64{4, 5})[0]
	g = random(r, y.Sizes()...)
	check("adaptive_avg_pool2d", x, g, y, call(t, "_adaptive_avg_pool2d_backward", g, x)[0])
	v := random(r, 2, 2, 5, 6, 7)
	y = call(t, "avg_pool3d", v, []int64{2, 3, 2}, []int64{2, 1, 2}, []int64{1, 0, 1}, false, false, 5)[0]
	g = random(r, y.Sizes()...)
	check("avg_pool3d", v, g, y, call(t, "avg_pool3d_backward", g, v, []int64{2, 3, 2}, []int64{2, 1, 2}, []int64{1, 0, 1}, false, false, 5)[0])
	f := call(t, "fractional_max_pool2d", x, two, []int64{4, 3}, random01(r, 2, 3, 2))
	g = random(r, f[0].Sizes()...)
	check("fractional_max_pool2d", x, g, f[0], call(t, "fractional_max_pool2d_backward", g, x, two, []int64{4, 3}, f[1])[0])
}

func random01(r *rand.Rand, sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Float64, sizes...)
	for i := range tensor.Data[float64](t) {
		tensor.Data[float64](t)[i] = r.Float64()
	}
	return t
}

// TestNormBackward compares the gradients of layer and group norm with central differences.
func TestNormBackward(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	x, g := random(r, 2, 6, 4, 3), random(r, 2, 6, 4, 3)
	w, b := random(r, 4, 3), random(r, 4, 3)
	cw, cb := random(r, 6), random(r, 6)
	layer := func() []*tensor.Tensor { return call(t, "native_layer_norm", x, []int64{4, 3}, w, b, 1e-5) }
	group := func() []*tensor.Tensor { return call(t, "native_group_norm", x, cw, cb, 2, 6, 12, 3, 1e-5) }
	l, s := layer(), group()
	all := []bool{true, true, true}
	differences(t, "layer_norm", g, layer, []*tensor.Tensor{x, w, b}, call(t, "native_layer_norm_backward", g, x, []int64{4, 3}, l[1], l[2], w, b, all))
	differences(t, "group_norm", g, group, []*tensor.Tensor{x, cw, cb}, call(t, "native_group_norm_backward", g, x, s[1], s[2], cw, 2, 6, 12, 3, all))
}

func differences(t *testing.T, name string, g *tensor.Tensor, f func() []*tensor.Tensor, params, grads []*tensor.Tensor) {
	t.Helper()
	const h = 1e-5
	for p, x := range params {
		v := tensor.Data[float64](x)
		for i := range v {
			old := v[i]
			v[i] = old + h
			up := dot(g, f()[0])
			v[i] = old - h
			down := dot(g, f()[0])
			v[i] = old
			if got, want := tensor.Contiguous[float64](grads[p])[i], (up-down)/(2*h); math.Abs(got-want) > 1e-5 {
				t.Fatalf("%s: gradient %d, element %d: %v, by differences %v", name, p, i, got, want)
			}
		}
	}
}

// TestCovariance checks cov and corrcoef against sums written out.
func TestCovariance(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	x := random(r, 3, 5)
	f, _ := tensor.FromSlice([]int64{1, 2, 3, 1, 2}, 5)
	w, _ := tensor.FromSlice([]float64{0.5, 1, 0.25, 2, 1}, 5)
	v := tensor.Data[float64](x)
	weight := []float64{0.5, 2, 0.75, 2, 2} // f*w
	sum, square := 0.0, 0.0
	for i, q := range weight {
		sum += q
		square += q * []float64{0.5, 1, 0.25, 2, 1}[i]
	}
	mean := func(i int) (s float64) {
		for k, q := range weight {
			s += q * v[i*5+k] / sum
		}
		return s
	}
	got := tensor.Contiguous[float64](call(t, "cov", x, aten.Kw("fweights", f), aten.Kw("aweights", w))[0])
	for i := range 3 {
		for j := range 3 {
			c := 0.0
			for k, q := range weight {
				c += q * (v[i*5+k] - mean(i)) * (v[j*5+k] - mean(j))
			}
			c /= sum - square/sum
			if math.Abs(c-got[i*3+j]) > 1e-12 {
				t.Errorf("cov[%d, %d] = %v, want %v", i, j, got[i*3+j], c)
			}
		}
	}
	for i, c := range tensor.Contiguous[float64](call(t, "corrcoef", x)[0]) {
		if math.Abs(c) > 1 || i%4 == 0 && math.Abs(c-1) > 1e-12 {
			t.Errorf("corrcoef element %d is %v", i, c)
		}
	}
}
