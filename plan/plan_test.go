package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// builder is what a test program calls: operators by name, with constants drawn from a fixed seed.
type builder struct {
	*aten.Build
	consts *rand.Rand
}

// weight is a constant of the given sizes.
func (b *builder) weight(sizes ...int64) *aten.Value {
	return aten.FromTensor(random(b.consts, sizes...))
}

// positive is a constant with numbers in [0.5, 1.5).
func (b *builder) positive(sizes ...int64) *aten.Value {
	t := random(b.consts, sizes...)
	for i, x := range tensor.Data[float32](t) {
		tensor.Data[float32](t)[i] = 0.5 + float32(math.Mod(math.Abs(float64(x)), 1))
	}
	return aten.FromTensor(t)
}

func random(r *rand.Rand, sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Float32, sizes...)
	d := tensor.Data[float32](t)
	for i := range d {
		d[i] = float32(r.NormFloat64())
	}
	return t
}

// testCase is a program over inputs of the given sizes.
type testCase struct {
	name   string
	inputs [][]int64
	run    func(b *builder, in []*aten.Value) []*aten.Value
	want   []string // parts of the printed plan
	absent []string // what must not be in it
	tol    float64  // 0: 1e-5
}

// guarded turns the refusals that f panics with into errors, as whoever walks a graph does.
func guarded(f func() []*aten.Value) (out []*aten.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(*aten.Error); ok {
				err = e
				return
			}
			panic(r)
		}
	}()
	return f(), nil
}

func (c *testCase) compile(inputs []*tensor.Tensor, p *pool.Pool, opts Options) (*Plan, error) {
	record := func(exact bool) (*Recorder, []*aten.Value, error) {
		var outs []*aten.Value
		r, planned, err := Record(func(r *Recorder) (err error) {
			b := &builder{aten.NewBuild(r, nil), rand.New(rand.NewPCG(1, 2))}
			in := make([]*aten.Value, len(inputs))
			for i, t := range inputs {
				in[i] = r.External(Input, i, t)
			}
			outs, err = guarded(func() []*aten.Value { return c.run(b, in) })
			return err
		}, p, exact)
		if err == nil && !planned {
			err = errors.New("not planned")
		}
		return r, outs, err
	}
	r, outs, err := record(false)
	if err != nil {
		return nil, err
	}
	var exact []*aten.Value
	if r.Relaxed() {
		var ex *Recorder
		if ex, exact, err = record(true); err != nil {
			return nil, err
		}
		r.Follow(ex)
	}
	return r.Finish(outs, exact, opts)
}

func (c *testCase) eager(inputs []*tensor.Tensor) []*aten.Value {
	b := &builder{aten.NewBuild(&aten.Eager{}, nil), rand.New(rand.NewPCG(1, 2))}
	in := make([]*aten.Value, len(inputs))
	for i, t := range inputs {
		in[i] = aten.FromTensor(t)
	}
	return c.run(b, in)
}

// test holds the plan against eager mode: with all passes, without each one, and without all of them.
func (c *testCase) test(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var inputs []*tensor.Tensor
	for _, s := range c.inputs {
		inputs = append(inputs, random(r, s...))
	}
	var all []string
	for _, p := range Passes() {
		if HasPass(p.Name) {
			all = append(all, p.Name)
		}
	}
	all = append(all, inPlacePass)
	without := [][]string{nil, all}
	for _, p := range all {
		without = append(without, []string{p})
	}
	workers := pool.New(2)
	defer workers.Close()
	for i, w := range without {
		p, err := c.compile(clones(inputs), workers, Options{Without: w, Cache: &Cache{}})
		if err != nil {
			t.Fatalf("without %v: %v", w, err)
		}
		if i == 0 {
			c.checkText(t, p.String())
		}
		f, err := p.NewFrame(inputs, nil, workers)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the frame is used again
			in := clones(inputs)
			for _, x := range in {
				tensor.Data[float32](x)[0] += float32(r.NormFloat64())
			}
			want := c.eager(clones(in))
			got, err := f.Run(context.Background(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if err := c.same(got[k], want[k].T); err != nil {
					t.Errorf("without %v: output %d: %v\n%v", w, k, err, p)
				}
			}
		}
	}
}

func clones(l []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(l))
	for i, t := range l {
		out[i] = clone(t)
	}
	return out
}

func (c *testCase) checkText(t *testing.T, text string) {
	t.Helper()
	for _, w := range c.want {
		if !strings.Contains(text, w) {
			t.Errorf("the plan has no %q:\n%s", w, text)
		}
	}
	for _, w := range c.absent {
		if strings.Contains(text, w) {
			t.Errorf("the plan has %q:\n%s", w, text)
		}
	}
}

func (c *testCase) same(got, want *tensor.Tensor) error {
	if !slices.Equal(got.Sizes(), want.Sizes()) || got.DType() != want.DType() {
		return fmt.Errorf("got %v %v, want %v %v", got.DType(), got.Sizes(), want.DType(), want.Sizes())
	}
	if !slices.Equal(got.Strides(), want.Strides()) {
		return fmt.Errorf("strides %v, want %v", got.Strides(), want.Strides())
	}
	tol := c.tol
	if tol == 0 {
		tol = 1e-5
	}
	for i := range want.Numel() {
		g, w := got.Float(i), want.Float(i)
		if g != w && !(math.Abs(g-w) <= tol*(1+math.Abs(w))) && !(math.IsNaN(g) && math.IsNaN(w)) {
			return fmt.Errorf("element %d is %v, want %v", i, g, w)
		}
	}
	return nil
}

func runCases(t *testing.T, cases []testCase) {
	for i := range cases {
		t.Run(cases[i].name, cases[i].test)
	}
}

type values = []*aten.Value

// conv calls convolution with the usual arguments.
func (b *builder) conv(x, w, bias *aten.Value, stride, pad, groups int) *aten.Value {
	n := w.Dim() - 2
	list := func(v int) []int64 { return slices.Repeat([]int64{int64(v)}, n) }
	var bb any
	if bias != nil {
		bb = bias
	}
	return b.Call("convolution", x, w, bb, list(stride), list(pad), list(1), false, list(0), groups)
}

func (b *builder) batchNorm(x *aten.Value) *aten.Value {
	c := x.Sizes[1].Int64()
	return b.CallN("_native_batch_norm_legit_no_training", x, b.weight(c), b.weight(c), b.weight(c), b.positive(c), 0.1, 1e-5)[0]
}

func TestConvolutions(t *testing.T) {
	runCases(t, []testCase{
		{"conv bn relu", [][]int64{{1, 3, 9, 11}}, func(b *builder, in values) values {
			return values{b.Call("relu", b.batchNorm(b.conv(in[0], b.weight(5, 3, 3, 3), nil, 2, 1, 1)))}
		}, []string{"3x3 3->5 /2x2 scale bias relu"}, []string{"batch_norm", "aten.relu"}, 0},
		{"residual block", [][]int64{{2, 8, 7, 5}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(8, 8, 1, 1), b.weight(8), 1, 0, 1)
			y := b.Call("relu_", b.batchNorm(b.conv(x, b.weight(8, 8, 3, 3), nil, 1, 1, 1)))
			y = b.batchNorm(b.conv(y, b.weight(8, 8, 1, 1), nil, 1, 0, 1))
			y = b.Call("add_.Tensor", y, x)
			return values{b.Call("relu_", y)}
		}, []string{"scale bias residual relu", "scale bias relu"}, []string{"plan.pointwise", "aten.relu"}, 1e-4},
		{"activation before residual", [][]int64{{1, 4, 6, 6}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(6, 4, 1, 1), nil, 1, 0, 1)
			y := b.Call("silu", b.conv(x, b.weight(6, 6, 3, 3), b.weight(6), 1, 1, 1))
			return values{b.Call("add.Tensor", x, y)}
		}, []string{"bias silu residual"}, nil, 1e-4},
		{"depthwise hardswish", [][]int64{{1, 6, 9, 9}}, func(b *builder, in values) values {
			y := b.batchNorm(b.conv(in[0], b.weight(6, 1, 3, 3), nil, 1, 1, 6))
			return values{b.Call("hardswish", y)}
		}, []string{"groups 6 scale bias hardswish"}, nil, 0},
		{"grouped, odd channels", [][]int64{{3, 6, 5, 4}}, func(b *builder, in values) values {
			return values{b.Call("leaky_relu", b.conv(in[0], b.weight(9, 2, 2, 3), b.weight(9), 1, 1, 3), 0.1)}
		}, []string{"leaky_relu"}, nil, 0},
		{"one dimension", [][]int64{{2, 5, 17}}, func(b *builder, in values) values {
			y := b.Call("gelu", b.conv(in[0], b.weight(7, 5, 3), b.weight(7), 2, 1, 1))
			return values{b.Call("permute", y, []int{0, 2, 1})}
		}, []string{"bias gelu"}, nil, 0},
		{"three dimensions", [][]int64{{1, 2, 4, 5, 6}}, func(b *builder, in values) values {
			return values{b.Call("relu", b.conv(in[0], b.weight(3, 2, 3, 3, 3), b.weight(3), 1, 1, 1))}
		}, []string{"3x3x3"}, nil, 0},
		{"transposed", [][]int64{{2, 4, 5, 3}}, func(b *builder, in values) values {
			y := b.Call("convolution", in[0], b.weight(4, 3, 2, 2), b.weight(3), []int{2, 2}, []int{0, 0}, []int{1, 1}, true, []int{0, 0}, 1)
			return values{b.Call("relu", b.batchNorm(y))}
		}, []string{"transposed 2x2 4->3 /2x2 scale bias relu"}, nil, 0},
		{"squeeze and excite", [][]int64{{2, 8, 6, 7}}, func(b *builder, in values) values {
			x := b.Call("relu", b.conv(in[0], b.weight(8, 8, 1, 1), nil, 1, 0, 1))
			s := b.Call("mean.dim", x, []int{2, 3}, true)
			s = b.Call("relu", b.conv(s, b.weight(3, 8, 1, 1), b.weight(3), 1, 0, 1))
			s = b.Call("sigmoid", b.conv(s, b.weight(8, 3, 1, 1), b.weight(8), 1, 0, 1))
			return values{b.conv(b.Call("mul.Tensor", x, s), b.weight(4, 8, 1, 1), nil, 1, 0, 1)}
		}, []string{"bias sigmoid", "{mul(x0, x1)}"}, nil, 1e-4},
		{"norm before activation and convolution", [][]int64{{1, 5, 6, 6}}, func(b *builder, in values) values {
			return values{b.conv(b.Call("relu", b.batchNorm(in[0])), b.weight(4, 5, 3, 3), nil, 1, 1, 1)}
		}, []string{"mul_add(x0, x1, x2), relu(t0)"}, nil, 1e-4},
		{"padded before", [][]int64{{2, 5, 17}, {1, 3, 9, 8}}, func(b *builder, in values) values {
			causal := b.conv(b.Call("constant_pad_nd", in[0], []int{4, 0}), b.weight(6, 5, 5), b.weight(6), 1, 0, 1)
			same := b.Call("constant_pad_nd", in[1], []int{0, 1, 1, 2})
			x := b.conv(same, b.weight(4, 3, 3, 3), nil, 2, 0, 1)
			y := b.conv(same, b.weight(4, 3, 3, 3), nil, 2, 1, 1)
			ones := b.conv(b.Call("constant_pad_nd", in[1], []int{1, 1}, 1.0), b.weight(4, 3, 1, 1), nil, 1, 0, 1)
			cut := b.conv(b.Call("constant_pad_nd", in[1], []int{-1, 2}), b.weight(4, 3, 3, 3), nil, 1, 0, 1)
			kept := b.Call("constant_pad_nd", in[1], []int{1, 1, 1, 1})
			return values{causal, x, y, ones, cut, kept, b.conv(kept, b.weight(6, 1, 3, 3), nil, 1, 0, 3)}
		}, []string{"3x3 3->4 /2x2", "1x5 5->6 bias"}, nil, 1e-5},
		{"taps that see nothing but padding", [][]int64{{1, 3, 6, 7}, {2, 3, 4}}, func(b *builder, in values) values {
			at := func(x, w *aten.Value, stride, pad, dilation []int) *aten.Value {
				return b.Call("convolution", x, w, nil, stride, pad, dilation, false, []int{0}, 1)
			}
			return values{at(in[0], b.weight(4, 3, 3, 3), []int{1, 1}, []int{7, 8}, []int{7, 8}), at(in[0], b.weight(4, 3, 3, 3), []int{1, 1}, []int{6, 3}, []int{6, 3}),
				at(in[0], b.weight(4, 3, 5, 3), []int{2, 3}, []int{12, 9}, []int{3, 9}), at(in[0], b.weight(4, 3, 2, 2), []int{4, 4}, []int{9, 9}, []int{8, 11}),
				at(in[1], b.weight(5, 3, 3), []int{1}, []int{16}, []int{8}), at(in[1], b.weight(5, 3, 3), []int{5}, []int{7}, []int{6})}
		}, []string{"conv=1x1 3->4"}, nil, 1e-5},
		{"concatenation before convolution", [][]int64{{2, 16, 13, 17}}, func(b *builder, in values) values {
			x := b.Call("relu", b.conv(in[0], b.weight(16, 16, 3, 3), nil, 1, 1, 1))
			y := b.conv(x, b.weight(32, 16, 1, 1), nil, 1, 0, 1)
			cat := func(l ...*aten.Value) *aten.Value { return b.Call("cat", l, 1) }
			odd := b.conv(cat(x, b.conv(x, b.weight(3, 16, 1, 1), nil, 1, 0, 1), x), b.weight(32, 35, 3, 3), nil, 1, 1, 1)
			rows := b.conv(b.Call("cat", values{x, x}, 2), b.weight(32, 16, 3, 3), nil, 1, 1, 1)
			return values{b.Call("relu", b.batchNorm(b.conv(cat(y, x, y), b.weight(48, 80, 3, 3), nil, 1, 1, 1))), odd, rows}
		}, nil, nil, 1e-3}, // of sums of thousands
		{"expansion and depthwise", [][]int64{{1, 4, 70, 64}}, func(b *builder, in values) values {
			x := b.Call("relu", b.batchNorm(b.conv(in[0], b.weight(36, 4, 1, 1), nil, 1, 0, 1)))
			y := b.Call("silu", b.conv(x, b.weight(36, 1, 3, 3), nil, 2, 1, 36))
			return values{b.Call("add.Tensor", y, b.conv(y, b.weight(36, 1, 3, 3), nil, 1, 1, 36))}
		}, nil, nil, 1e-4},
		{"layer scale", [][]int64{{1, 4, 5, 5}}, func(b *builder, in values) values {
			y := b.conv(in[0], b.weight(4, 4, 1, 1), b.weight(4), 1, 0, 1)
			return values{b.Call("add.Tensor", b.Call("mul.Tensor", y, b.weight(4, 1, 1)), in[0])}
		}, []string{"scale bias"}, nil, 0},
	})
}

func TestLayouts(t *testing.T) {
	runCases(t, []testCase{
		{"view of a convolution", [][]int64{{2, 3, 4, 5}}, func(b *builder, in values) values {
			y := b.conv(in[0], b.weight(6, 3, 3, 3), nil, 1, 1, 1)
			return values{b.Call("permute", b.Call("view", y, []int{2, 6, 20}), []int{0, 2, 1})}
		}, []string{"plan.conv"}, nil, 0},
		{"output keeps PyTorch's strides", [][]int64{{2, 3, 4, 5}}, func(b *builder, in values) values {
			y := b.conv(in[0], b.weight(6, 3, 1, 1), nil, 1, 0, 1)
			return values{y, b.Call("relu", y)}
		}, []string{"plan.copy"}, nil, 0},
		{"reshape that PyTorch does not copy, written later", [][]int64{{2, 3, 4, 5}}, func(b *builder, in values) values {
			y := b.conv(in[0], b.weight(6, 3, 1, 1), nil, 1, 0, 1)
			z := b.Call("reshape", y, []int{2, 120})
			b.Call("mul_.Scalar", z, 2)
			return values{b.Call("relu", y)}
		}, []string{"aten.convolution"}, nil, 0},
		{"view refused", [][]int64{{2, 3, 4, 5}}, func(b *builder, in values) values {
			y := b.Call("permute", b.conv(in[0], b.weight(6, 3, 1, 1), nil, 1, 0, 1), []int{0, 2, 3, 1})
			return values{b.Call("relu", b.Call("reshape", y, []int{2, 120}))}
		}, nil, nil, 0},
		{"pooling and concatenation", [][]int64{{1, 4, 8, 8}}, func(b *builder, in values) values {
			x := b.Call("relu", b.conv(in[0], b.weight(4, 4, 3, 3), nil, 1, 1, 1))
			p := b.Call("max_pool2d", x, []int{3, 3}, []int{1, 1}, []int{1, 1})
			q := b.Call("avg_pool2d", x, []int{3, 3}, []int{1, 1}, []int{1, 1})
			y := b.Call("cat", values{x, p, q}, 1)
			return values{b.Call("flatten.using_ints", b.conv(y, b.weight(2, 12, 1, 1), nil, 1, 0, 1), 1)}
		}, []string{"max 3x3", "mean 3x3"}, nil, 1e-4},
		{"poolings at borders", [][]int64{{2, 5, 9, 7}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(5, 5, 1, 1), nil, 1, 0, 1)
			p := b.CallN("max_pool2d_with_indices", x, []int{3}, []int{2}, []int{1}, []int{2}, true)
			q := b.Call("avg_pool2d", x, []int{3, 2}, []int{2, 2}, []int{1, 0}, true, false)
			r := b.Call("avg_pool2d", x, []int{3, 2}, []int{2, 2}, []int{1, 1}, true, true)
			s := b.Call("avg_pool2d", x, []int{2, 2}, []int{}, []int{0, 0}, false, true, 3)
			return values{p[0], q, r, s}
		}, []string{"max 3x3", "mean 3x2"}, nil, 1e-5},
		{"means", [][]int64{{2, 5, 9, 7}, {3, 11, 6}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(5, 5, 1, 1), nil, 1, 0, 1)
			return values{b.Call("mean.dim", x, []int{-1, -2}, true), b.Call("mean.dim", x, []int{2, 3}), b.Call("mean.dim", x, []int{1}),
				b.Call("mean.dim", in[1], []int{1}), b.Call("mean.dim", in[1], []int{0, 1}), b.Call("mean.dim", in[1], []int{2}, true)}
		}, []string{"plan.mean"}, nil, 1e-5},
		{"patches of an image, with residuals", [][]int64{{1, 6, 8, 8}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(12, 6, 1, 1), nil, 1, 0, 1)
			x = b.Call("transpose.int", b.Call("reshape", x, []int{48, 2, 4, 2}), 1, 2)
			x = b.Call("transpose.int", b.Call("reshape", x, []int{1, 12, 16, 4}), 1, 3)
			x = b.Call("reshape", x, []int{4, 16, 12})
			for range 2 {
				y := b.Call("layer_norm", x, []int{12}, b.weight(12), b.weight(12))
				x = b.Call("add.Tensor", x, b.Call("linear", y, b.weight(12, 12), b.weight(12)))
			}
			return values{x}
		}, []string{"norm=layer 64x12", "bias residual"}, []string{"native_layer_norm", "aten.add"}, 1e-4},
		{"real and imaginary parts side by side", [][]int64{{2, 3, 5, 8}, {5, 4}, {5, 4}}, func(b *builder, in values) values {
			p := b.Call("view", in[0], []int{2, 3, 5, 4, 2})
			re, im := b.Call("select.int", p, -1, 0), b.Call("select.int", p, -1, 1)
			y := b.Call("sub.Tensor", b.Call("mul.Tensor", re, in[1]), b.Call("mul.Tensor", im, in[2]))
			z := b.Call("add.Tensor", b.Call("mul.Tensor", re, in[2]), b.Call("mul.Tensor", im, in[1]))
			return values{b.Call("flatten.using_ints", b.Call("stack", values{y, z}, -1), 3)}
		}, nil, []string{"aten.mul"}, 0},
		{"extremes", [][]int64{{2, 9, 13}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(12, 9, 1), nil, 1, 0, 1)
			p, q, r := b.CallN("max.dim", x, 2), b.CallN("min.dim", in[0], 1, true), b.CallN("max.dim", in[0], 2)
			return values{p[0], q[0], r[0], r[1]}
		}, []string{"aten.amax", "aten.amin", "aten.max.dim"}, []string{"aten.min.dim"}, 1e-5},
		{"group norm in one and three dimensions", [][]int64{{2, 3, 30}, {1, 2, 4, 5, 6}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(8, 3, 5), nil, 2, 0, 1)
			x = b.Call("gelu", b.Call("group_norm", x, 8, b.weight(8), b.weight(8), 1e-5))
			y := b.conv(in[1], b.weight(6, 2, 3, 3, 3), nil, 1, 1, 1)
			y = b.Call("relu", b.CallN("native_group_norm", y, nil, nil, 1, 6, 120, 2, 1e-5)[0])
			return values{b.conv(x, b.weight(4, 8, 3), b.weight(4), 1, 1, 1), b.conv(y, b.weight(4, 6, 1, 1, 1), nil, 1, 0, 1)}
		}, []string{"native_group_norm"}, nil, 1e-4},
		{"upsampling of rows that are pixels", [][]int64{{1, 12, 5}}, func(b *builder, in values) values {
			x := b.Call("reshape", b.Call("permute", b.Call("linear", in[0], b.weight(6, 5), b.weight(6)), []int{0, 2, 1}), []int{1, 6, 3, 4})
			y := b.Call("upsample_bilinear2d.vec", x, []int{7, 8}, false, nil)
			z := b.Call("upsample_nearest2d.vec", x, []int{7, 8}, nil)
			return values{b.Call("add.Tensor", y, z), b.Call("upsample_bilinear2d.vec", x, []int{3, 8}, true, nil)}
		}, nil, nil, 1e-5},
		{"channel shuffle", [][]int64{{1, 6, 4, 4}}, func(b *builder, in values) values {
			x := b.conv(in[0], b.weight(6, 6, 1, 1), nil, 1, 0, 1)
			x = b.Call("transpose.int", b.Call("view", x, []int{1, 2, 3, 4, 4}), 1, 2)
			x = b.Call("view", b.Call("contiguous", x), []int{1, 6, 4, 4})
			l := b.CallN("split.Tensor", x, 3, 1)
			y := b.conv(l[1], b.weight(3, 3, 3, 3), nil, 1, 1, 1)
			return values{b.Call("cat", values{l[0], y}, 1)}
		}, nil, nil, 0},
	})
}

func TestLinear(t *testing.T) {
	runCases(t, []testCase{
		{"linear relu linear", [][]int64{{3, 13}}, func(b *builder, in values) values {
			y := b.Call("relu", b.Call("linear", in[0], b.weight(17, 13), b.weight(17)))
			return values{b.Call("linear", y, b.weight(5, 17))}
		}, []string{"3x13->17 bias relu", "3x17->5"}, []string{"aten."}, 0},
		{"transformer block", [][]int64{{2, 5, 16}}, func(b *builder, in values) values {
			x := in[0]
			y := b.Call("layer_norm", x, []int{16}, b.weight(16), b.weight(16))
			y = b.Call("gelu", b.Call("linear", y, b.weight(31, 16), b.weight(31)))
			return values{b.Call("add.Tensor", x, b.Call("linear", y, b.weight(16, 31), b.weight(16)))}
		}, []string{"bias gelu", "bias residual"}, []string{"pointwise"}, 1e-4},
		{"addmm over views", [][]int64{{2, 3, 8}}, func(b *builder, in values) values {
			x := b.Call("view", in[0], []int{6, 8})
			y := b.Call("addmm", b.weight(9), x, b.Call("t", b.weight(9, 8)))
			y = b.Call("tanh", b.Call("view", y, []int{2, 3, 9}))
			return values{b.Call("mm", b.Call("view", y, []int{6, 9}), b.weight(9, 4))}
		}, []string{"6x8->9 bias tanh", "6x9->4"}, nil, 0},
		{"rows apart", [][]int64{{4, 10}}, func(b *builder, in values) values {
			l := b.CallN("split.Tensor", in[0], 5, 1)
			return values{b.Call("linear", l[1], b.weight(3, 5)), b.Call("linear", b.Call("t", in[0]), b.weight(3, 4))}
		}, []string{"plan.copy"}, nil, 0},
		{"linear with batch norm and scale", [][]int64{{6, 7}}, func(b *builder, in values) values {
			y := b.batchNorm(b.Call("linear", in[0], b.weight(5, 7), b.weight(5)))
			return values{b.Call("sigmoid", b.Call("mul.Scalar", y, 0.25))}
		}, []string{"6x7->5 scale bias sigmoid"}, nil, 0},
		{"result used twice", [][]int64{{3, 4}}, func(b *builder, in values) values {
			y := b.Call("linear", in[0], b.weight(4, 4), b.weight(4))
			return values{b.Call("add.Tensor", b.Call("relu", y), y), y}
		}, nil, nil, 0},
	})
}

func TestPointwise(t *testing.T) {
	runCases(t, []testCase{
		{"chain", [][]int64{{3, 1031}, {3, 1031}}, func(b *builder, in values) values {
			y := b.Call("mul.Tensor", b.Call("exp", in[0]), in[1])
			y = b.Call("add.Scalar", b.Call("tanh", y), 2)
			return values{b.Call("div.Tensor", y, b.Call("sigmoid", in[0]))}
		}, []string{"exp(x0)"}, []string{"aten."}, 0},
		{"broadcast rows, columns, numbers", [][]int64{{5, 1, 700}, {3, 1}, {700}, {}}, func(b *builder, in values) values {
			y := b.Call("add.Tensor", in[0], in[1])
			y = b.Call("mul.Tensor", y, in[2])
			return values{b.Call("sub.Tensor", y, in[3])}
		}, []string{"t0 = add(x0, x1)"}, nil, 0},
		{"channels in the middle", [][]int64{{2, 3, 50}, {3, 1}}, func(b *builder, in values) values {
			return values{b.Call("relu", b.Call("mul.Tensor", in[0], in[1]))}
		}, []string{"t0 = mul(x0, x1), relu(t0)"}, nil, 0},
		{"transposed operand", [][]int64{{40, 33}, {33, 40}}, func(b *builder, in values) values {
			y := b.Call("add.Tensor", in[0], b.Call("t", in[1]))
			return values{b.Call("neg", b.Call("abs", y))}
		}, nil, nil, 0},
		{"shared part", [][]int64{{11, 13}}, func(b *builder, in values) values {
			x := b.Call("sin", in[0])
			return values{b.Call("mul.Tensor", b.Call("cos", x), b.Call("add.Tensor", x, x))}
		}, []string{"sin(x0)"}, nil, 0},
		{"views between", [][]int64{{6, 20}, {20}}, func(b *builder, in values) values {
			y := b.Call("view", b.Call("square", in[0]), []int{2, 3, 20})
			z := b.Call("view", b.Call("mul.Tensor", b.Call("sqrt", y), in[1]), []int{120})
			return values{b.Call("clamp", z, -1, 1)}
		}, nil, nil, 0},
		{"conditions", [][]int64{{5, 300}, {300}, {5, 1}}, func(b *builder, in values) values {
			c, d := b.Call("gt.Scalar", in[0], 0.2), b.Call("lt.Scalar", in[1], 0)
			y := b.Call("where.self", d, b.Call("exp", in[0]), in[2])
			y = b.Call("masked_fill.Scalar", b.Call("neg", y), c, -2.5)
			return values{y, b.Call("where.self", c, b.Call("relu", in[0]), aten.WrapScalar(aten.FloatS(-1e30)))}
		}, []string{"where(x1, t0, x2)"}, []string{"aten.where", "masked_fill"}, 0},
		{"a condition laid out otherwise", [][]int64{{40, 33}, {33, 40}}, func(b *builder, in values) values {
			return values{b.Call("where.self", b.Call("t", b.Call("gt.Scalar", in[1], 0)), in[0], b.Call("neg", in[0]))}
		}, nil, nil, 0},
		{"activations made of others", [][]int64{{5, 700}, {5, 700}}, func(b *builder, in values) values {
			y := b.Call("softplus", b.Call("mul.Scalar", in[0], 9), 1.5, 4)
			y = b.Call("add.Tensor", y, b.Call("elu", in[0], 1.3))
			y = b.Call("add.Tensor", y, b.Call("log1p", b.Call("abs", in[1])))
			y = b.Call("sub.Tensor", y, b.Call("expm1", in[1]))
			return values{b.Call("trunc", b.Call("mul.Scalar", y, 10)), b.Call("round", in[0]), b.Call("prelu", in[1], b.weight(700))}
		}, []string{"softplus", "elu", "expm1", "prelu", "log1p"}, []string{"aten."}, 1e-4},
		{"short rows", [][]int64{{7, 50, 1}, {50, 6}, {7, 1, 6}}, func(b *builder, in values) values {
			return values{b.Call("mul.Tensor", b.Call("exp", b.Call("mul.Tensor", in[0], in[1])), in[2])}
		}, nil, nil, 0},
		{"operands that repeat in different ways", [][]int64{{7, 300, 1}, {300, 18}, {7, 1, 18}, {7, 300, 18}, {300, 1}}, func(b *builder, in values) values {
			y := b.Call("add.Tensor", b.Call("mul.Tensor", in[0], in[1]), in[2])
			z := b.Call("mul.Tensor", b.Call("_to_copy", in[4], aten.Kw("dtype", tensor.BFloat16)), b.Call("_to_copy", in[1], aten.Kw("dtype", tensor.BFloat16)))
			return values{b.Call("mul.Tensor", y, in[3]), b.Call("exp", b.Call("mul.Tensor", in[0], in[4])), b.Call("neg", z),
				b.Call("where.self", b.Call("gt.Scalar", in[0], 0), in[1], in[3])}
		}, nil, nil, 0},
		{"in place, through a view", [][]int64{{4, 6}}, func(b *builder, in values) values {
			x := b.Call("mul.Scalar", in[0], 2)
			b.Call("add_.Scalar", b.Call("select.int", x, 0, 1), 1)
			b.Call("relu_", x)
			return values{x, b.Call("exp", x)}
		}, nil, nil, 0},
		{"operators without arguments", [][]int64{{3, 3}}, func(b *builder, in values) values {
			x := b.Call("linalg_solve", in[0], in[0])
			return values{b.Call("relu", x)}
		}, nil, nil, 1e-4},
		{"input that is an output", [][]int64{{4, 6}}, func(b *builder, in values) values {
			return values{b.Call("t", in[0]), b.Call("relu", in[0])}
		}, nil, nil, 0},
		{"16-bit floats round after each step", [][]int64{{3, 37}, {37}}, func(b *builder, in values) values {
			x := b.Call("_to_copy", in[0], aten.Kw("dtype", tensor.BFloat16))
			y := b.Call("_to_copy", in[1], aten.Kw("dtype", tensor.BFloat16))
			z := b.Call("mul.Tensor", b.Call("add.Tensor", x, y), 0.3)
			return values{b.Call("add.Scalar", b.Call("silu", z), 0.1), b.Call("_to_copy", z, aten.Kw("dtype", tensor.Float16))}
		}, nil, nil, 1e-9},
	})
}

func TestRecognition(t *testing.T) {
	formula := func(name, want string, f func(b *builder, x *aten.Value) *aten.Value) testCase {
		return testCase{name, [][]int64{{7, 19}}, func(b *builder, in values) values {
			x := b.Call("linear", in[0], b.weight(19, 19), b.weight(19))
			return values{f(b, x)}
		}, []string{want}, []string{"pointwise"}, 1e-4}
	}
	runCases(t, []testCase{
		formula("silu", "bias silu", func(b *builder, x *aten.Value) *aten.Value {
			return b.Call("mul.Tensor", x, b.Call("sigmoid", x))
		}),
		formula("hardswish", "bias hardswish", func(b *builder, x *aten.Value) *aten.Value {
			c := b.Call("clamp", b.Call("add.Scalar", x, 3), 0, 6)
			return b.Call("div.Scalar", b.Call("mul.Tensor", x, c), 6)
		}),
		formula("hardsigmoid", "bias hardsigmoid", func(b *builder, x *aten.Value) *aten.Value {
			return b.Call("div.Scalar", b.Call("clamp", b.Call("add.Scalar", x, 3), 0, 6), 6)
		}),
		formula("gelu", "bias gelu", func(b *builder, x *aten.Value) *aten.Value {
			e := b.Call("add.Scalar", b.Call("erf", b.Call("mul.Scalar", x, math.Sqrt2/2)), 1)
			return b.Call("mul.Tensor", b.Call("mul.Scalar", x, 0.5), e)
		}),
		formula("gelu_tanh", "bias gelu_tanh", func(b *builder, x *aten.Value) *aten.Value {
			p := b.Call("add.Tensor", x, b.Call("mul.Scalar", b.Call("pow.Tensor_Scalar", x, 3), 0.044715))
			e := b.Call("add.Scalar", b.Call("tanh", b.Call("mul.Scalar", p, math.Sqrt(2/math.Pi))), 1)
			return b.Call("mul.Tensor", b.Call("mul.Scalar", x, 0.5), e)
		}),
		{"rms_norm", [][]int64{{2, 3, 24}}, func(b *builder, in values) values {
			x := in[0]
			v := b.Call("mean.dim", b.Call("pow.Tensor_Scalar", x, 2), []int{-1}, true)
			y := b.Call("mul.Tensor", x, b.Call("rsqrt", b.Call("add.Scalar", v, 1e-6)))
			return values{b.Call("mul.Tensor", b.weight(24), y)}
		}, []string{"norm=rms 6x24"}, []string{"pointwise", "mean"}, 0},
		{"rms_norm over another dimension", [][]int64{{2, 24, 3}}, func(b *builder, in values) values {
			x := in[0]
			v := b.Call("mean.dim", b.Call("pow.Tensor_Scalar", x, 2), []int{1}, true)
			return values{b.Call("mul.Tensor", x, b.Call("rsqrt", b.Call("add.Scalar", v, 1e-6)))}
		}, nil, []string{"rms_norm"}, 0},
	})
}

// TestGELUEnds has a gelu of huge numbers where PyTorch has its argument in a row and the plan has channels last, the other way round,
// and written out in forms that overflow and that do not.
func TestGELUEnds(t *testing.T) {
	written := func(b *builder, x *aten.Value, halfFirst bool) *aten.Value {
		e := b.Call("add.Scalar", b.Call("erf", b.Call("mul.Scalar", x, math.Sqrt2/2)), 1)
		if halfFirst {
			return b.Call("mul.Tensor", b.Call("mul.Scalar", x, 0.5), e)
		}
		return b.Call("mul.Scalar", b.Call("mul.Tensor", x, e), 0.5)
	}
	huge := func(b *builder, x *aten.Value) *aten.Value { // 3e38 or +Inf, with both signs
		big := b.Call("mul.Scalar", b.Call("sign", x), 3e38)
		return b.Call("where.self", b.Call("gt.Scalar", b.Call("abs", x), 1), b.Call("mul.Scalar", big, 2), big)
	}
	runCases(t, []testCase{
		{"convolution", [][]int64{{1, 3, 5, 7}}, func(b *builder, in values) values {
			y := huge(b, b.conv(in[0], b.weight(8, 3, 3, 3), b.weight(8), 1, 1, 1))
			return values{b.Call("gelu", y), written(b, y, true), written(b, y, false), b.Call("gelu", y, aten.Kw("approximate", "tanh"))}
		}, nil, nil, 1e-4},
		{"channels last", [][]int64{{1, 5, 7, 3}}, func(b *builder, in values) values {
			y := huge(b, b.conv(b.Call("permute", in[0], []int{0, 3, 1, 2}), b.weight(8, 3, 3, 3), b.weight(8), 1, 1, 1))
			return values{b.Call("gelu", y), b.Call("gelu", b.Call("permute", y, []int{0, 2, 3, 1}))}
		}, nil, nil, 1e-4},
	})
}

// TestNearConstants has formulas that are not quite the known ones.
func TestNearConstants(t *testing.T) {
	runCases(t, []testCase{
		{"silu", [][]int64{{7, 19}}, func(b *builder, in values) values {
			return values{b.Call("div.Tensor", in[0], b.Call("add.Scalar", b.Call("exp", b.Call("neg", in[0])), 1.001))}
		}, nil, []string{"silu"}, 0},
		{"hardsigmoid", [][]int64{{7, 19}}, func(b *builder, in values) values {
			return values{b.Call("mul.Scalar", b.Call("clamp", b.Call("add.Scalar", in[0], 3), 0, 6), 0.1667)}
		}, nil, []string{"hardsigmoid"}, 0},
	})
}

func TestNorms(t *testing.T) {
	runCases(t, []testCase{
		{"layer norms", [][]int64{{3, 5, 7}}, func(b *builder, in values) values {
			x := b.Call("layer_norm", in[0], []int{7}, b.weight(7), b.weight(7))
			y := b.Call("layer_norm", x, []int{5, 7})
			return values{b.Call("layer_norm", b.Call("relu", y), []int{7}, b.weight(7)), b.CallN("native_layer_norm", x, []int{7}, nil, nil, 1e-3)[1]}
		}, []string{"norm=layer 15x7", "norm=layer 3x35", "aten.native_layer_norm"}, nil, 0},
		{"RMS norms", [][]int64{{3, 5, 70}}, func(b *builder, in values) values {
			x := b.Call("rms_norm", in[0], []int{70}, b.weight(70), 1e-5)
			return values{b.Call("rms_norm", b.Call("relu", x), []int{70})}
		}, []string{"norm=rms 15x70"}, nil, 0},
		{"16-bit floats", [][]int64{{3, 70}}, func(b *builder, in values) values {
			x := b.Call("_to_copy", in[0], aten.Kw("dtype", tensor.BFloat16))
			w := b.Call("_to_copy", b.weight(70), aten.Kw("dtype", tensor.BFloat16))
			return values{b.Call("rms_norm", x, []int{70}, w, 1e-5), b.Call("layer_norm", x, []int{70}, w, w)}
		}, []string{"norm=rms 3x70", "norm=layer 3x70"}, nil, 0.01},
		{"not contiguous", [][]int64{{6, 4}}, func(b *builder, in values) values {
			return values{b.Call("layer_norm", b.Call("t", in[0]), []int{6}, b.weight(6), b.weight(6))}
		}, nil, nil, 0},
	})
}

func TestAttention(t *testing.T) {
	runCases(t, []testCase{
		{"shared heads", [][]int64{{2, 6, 5, 8}, {2, 2, 7, 8}, {2, 2, 7, 8}}, func(b *builder, in values) values {
			repeat := func(x *aten.Value) *aten.Value {
				return b.Call("reshape", b.Call("expand", b.Call("unsqueeze", x, 2), []int{2, 2, 3, 7, 8}), []int{2, 6, 7, 8})
			}
			return values{b.Call("scaled_dot_product_attention", in[0], repeat(in[1]), repeat(in[2]))}
		}, []string{"attention"}, []string{"reshape"}, 1e-5},
		{"projections", [][]int64{{2, 9, 12}}, func(b *builder, in values) values {
			heads := func(x *aten.Value) *aten.Value {
				return b.Call("transpose.int", b.Call("view", x, []int{2, 9, 3, 4}), 1, 2)
			}
			q, k, v := b.Call("linear", in[0], b.weight(12, 12)), b.Call("linear", in[0], b.weight(12, 12)), b.Call("linear", in[0], b.weight(12, 12))
			y := b.Call("scaled_dot_product_attention", heads(q), heads(k), heads(v))
			y = b.Call("reshape", b.Call("transpose.int", y, 1, 2), []int{2, 9, 12})
			return values{b.Call("add.Tensor", in[0], b.Call("linear", y, b.weight(12, 12), b.weight(12)))}
		}, []string{"bias residual"}, []string{"clone", "plan.copy"}, 1e-4},
	})
}

func TestAttentionWrittenOut(t *testing.T) {
	attention := func(b *builder, x *aten.Value, mask *aten.Value) *aten.Value {
		heads := func() *aten.Value {
			y := b.Call("view", b.Call("linear", x, b.weight(12, 12), b.weight(12)), []int{2, 9, 3, 4})
			return b.Call("transpose.int", y, 1, 2)
		}
		s := b.Call("div.Scalar", b.Call("matmul", heads(), b.Call("transpose.int", heads(), -1, -2)), 2)
		if mask != nil {
			s = b.Call("add.Tensor", s, mask)
		}
		y := b.Call("matmul", b.Call("softmax.int", s, -1), heads())
		y = b.Call("reshape", b.Call("contiguous", b.Call("transpose.int", y, 1, 2)), []int{2, 9, 12})
		return b.Call("linear", y, b.weight(12, 12), b.weight(12))
	}
	runCases(t, []testCase{
		{"plain", [][]int64{{2, 9, 12}}, func(b *builder, in values) values {
			return values{b.Call("add.Tensor", in[0], attention(b, in[0], nil))}
		}, []string{"flash_attention"}, []string{"bmm", "softmax", "contiguous", "reshape"}, 1e-4},
		{"constant mask", [][]int64{{2, 9, 12}}, func(b *builder, in values) values {
			return values{attention(b, in[0], b.weight(1, 1, 9, 9))}
		}, []string{"flash_attention"}, []string{"bmm", "softmax"}, 1e-4},
		{"finite mask from the input", [][]int64{{2, 9, 12}, {2, 1, 1, 9}}, func(b *builder, in values) values {
			m := b.Call("where.self", b.Call("gt.Scalar", in[1], 0), aten.WrapScalar(aten.FloatS(0)), aten.WrapScalar(aten.FloatS(-1e30)))
			return values{attention(b, in[0], m)}
		}, []string{"flash_attention"}, []string{"bmm", "softmax"}, 1e-4},
		{"windows with two masks", [][]int64{{8, 9, 12}}, func(b *builder, in values) values {
			qkv := b.Call("permute", b.Call("reshape", b.Call("linear", in[0], b.weight(36, 12), b.weight(36)), []int{8, 9, 3, 3, 4}), []int{2, 0, 3, 1, 4})
			part := func(i int) *aten.Value { return b.Call("select.int", qkv, 0, i) }
			s := b.Call("matmul", b.Call("mul.Scalar", part(0), 0.5), b.Call("transpose.int", part(1), -2, -1))
			s = b.Call("add.Tensor", s, b.weight(1, 3, 9, 9))
			m := b.Call("new_zeros", in[0], []int{6, 6})
			b.Call("fill_.Scalar", b.Call("slice.Tensor", m, 0, 0, 2), 1)
			m = b.Call("reshape", b.Call("permute", b.Call("view", m, []int{2, 3, 2, 3}), []int{0, 2, 1, 3}), []int{4, 9})
			m = b.Call("sub.Tensor", b.Call("unsqueeze", m, 1), b.Call("unsqueeze", m, 2))
			m = b.Call("masked_fill.Scalar", m, b.Call("ne.Scalar", m, 0), -100)
			s = b.Call("add.Tensor", b.Call("view", s, []int{2, 4, 3, 9, 9}), b.Call("unsqueeze", b.Call("unsqueeze", m, 1), 0))
			y := b.Call("matmul", b.Call("softmax.int", b.Call("view", s, []int{8, 3, 9, 9}), -1), part(2))
			return values{b.Call("reshape", b.Call("transpose.int", y, 1, 2), []int{8, 9, 12})}
		}, []string{"flash_attention", "scale=0.5"}, []string{"bmm", "softmax", "masked_fill", "pointwise"}, 1e-5},
		{"scores added to a bias", [][]int64{{2, 9, 12}}, func(b *builder, in values) values {
			part := func(order ...int) *aten.Value {
				y := b.Call("view", b.Call("linear", in[0], b.weight(12, 12), b.weight(12)), []int{2, 9, 3, 4})
				y = b.Call("permute", y, order)
				return b.Call("reshape", y, []int64{6, y.Sizes[2].Int64(), y.Sizes[3].Int64()})
			}
			s := b.Call("baddbmm", b.weight(6, 1, 9), part(0, 2, 1, 3), part(0, 2, 3, 1), aten.Kw("beta", 1.0), aten.Kw("alpha", 0.5))
			s = b.Call("add.Tensor", b.Call("view", s, []int{2, 3, 9, 9}), b.weight(1, 1, 9, 9))
			y := b.Call("bmm", b.Call("view", b.Call("softmax.int", s, -1), []int{6, 9, 9}), part(0, 2, 1, 3))
			return values{y}
		}, []string{"flash_attention", "scale=0.5"}, []string{"bmm", "softmax"}, 1e-4},
		{"mask that may be infinite", [][]int64{{2, 9, 12}, {2, 1, 1, 9}}, func(b *builder, in values) values {
			return values{attention(b, in[0], in[1])}
		}, []string{"aten.bmm", "softmax"}, nil, 1e-4},
		{"queries, keys and values in one product", [][]int64{{2, 9, 12}}, func(b *builder, in values) values {
			qkv := b.Call("view", b.Call("linear", in[0], b.weight(36, 12), b.weight(36)), []int{2, 9, 3, 3, 4})
			qkv = b.Call("contiguous", b.Call("permute", qkv, []int{2, 0, 3, 1, 4}))
			q, k, v := b.Call("select.int", qkv, 0, 0), b.Call("select.int", qkv, 0, 1), b.Call("select.int", qkv, 0, 2)
			return values{b.Call("scaled_dot_product_attention", q, k, v, nil, 0.0, true)}
		}, []string{"flash_attention"}, []string{"contiguous"}, 1e-5},
	})
}

// What is written into fresh memory from constants is known when the plan is made; what comes from the input is not.
func TestConstantWrites(t *testing.T) {
	runCases(t, []testCase{
		{"constants", [][]int64{{4, 5}}, func(b *builder, in values) values {
			m := b.Call("zeros_like", in[0])
			b.Call("fill_.Scalar", b.Call("select.int", m, 0, 1), 3)
			b.Call("add_.Scalar", m, 1)
			return values{b.Call("add.Tensor", in[0], m)}
		}, []string{"const float32[4 5]"}, []string{"fill_", "zeros"}, 0},
		{"input after a read", [][]int64{{4, 5}, {5}}, func(b *builder, in values) values {
			m := b.Call("ones", []int{4, 5})
			b.Call("fill_.Scalar", b.Call("select.int", m, 0, 0), 2)
			x := b.Call("mul.Tensor", in[0], m)
			b.Call("copy_", b.Call("select.int", m, 0, 2), in[1])
			b.Call("fill_.Scalar", b.Call("select.int", m, 0, 3), 7)
			other := b.Call("new_full", in[0], []int{5}, 4)
			b.Call("add_.Scalar", other, 1)
			return values{x, b.Call("mul.Tensor", x, m), b.Call("add.Tensor", in[1], other)}
		}, []string{"const float32[5]"}, nil, 0},
		{"a constant read, then written", [][]int64{{4, 5}}, func(b *builder, in values) values {
			m := b.Call("zeros", []int{4, 5})
			x := b.Call("add.Tensor", in[0], m)
			b.Call("fill_.Scalar", b.Call("select.int", m, 0, 3), 7)
			return values{x, b.Call("add.Tensor", in[0], m)}
		}, nil, nil, 0},
	})
}

func TestCommon(t *testing.T) {
	runCases(t, []testCase{
		{"masks", [][]int64{{4, 5}, {5}}, func(b *builder, in values) values {
			masked := func(x *aten.Value) *aten.Value {
				m := b.Call("unsqueeze", b.Call("gt.Scalar", in[1], 0.5), 0)
				return b.Call("where.self", m, x, aten.WrapScalar(aten.FloatS(-1)))
			}
			return values{masked(in[0]), b.Call("relu", masked(b.Call("exp", in[0]))), b.Call("gt.Scalar", in[1], 0.25)}
		}, nil, nil, 0},
		{"written between", [][]int64{{4, 5}}, func(b *builder, in values) values {
			x := b.Call("mul.Scalar", in[0], 2)
			y := b.Call("cat", values{x, x}, 0)
			b.Call("add_.Scalar", b.Call("select.int", x, 0, 1), 1)
			z := b.Call("cat", values{x, x}, 0)
			return values{b.Call("add.Tensor", y, z)}
		}, []string{"aten.cat"}, nil, 0},
	})
}

// TestPassOrder: a pass runs after those it names.
func TestPassOrder(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Passes() {
		for before, why := range p.After {
			if !seen[before] {
				t.Errorf("pass %s must come after %s (%s)", p.Name, before, why)
			}
		}
		if seen[p.Name] {
			t.Errorf("two passes are named %s", p.Name)
		}
		seen[p.Name] = true
	}
}

// TestVerify: a plan that has been tampered with does not pass.
func TestVerify(t *testing.T) {
	c := testCase{inputs: [][]int64{{4, 4}}, run: func(b *builder, in values) values {
		x := b.Call("linear", in[0], b.weight(4, 4))
		y := b.Call("linear", x, b.weight(4, 4))
		return values{b.Call("mm", b.Call("t", x), y)}
	}}
	inputs := []*tensor.Tensor{random(rand.New(rand.NewPCG(3, 4)), 4, 4)}
	p, err := c.compile(inputs, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range p.buffers {
		b.Offset = 0
	}
	if p.Verify() == nil {
		t.Error("two values alive at one place are not noticed")
	}
	slices.Reverse(p.instrs)
	if p.Verify() == nil {
		t.Error("reading before writing is not noticed")
	}
}
