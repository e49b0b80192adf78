package nn_test

import (
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	f "github.com/pt2go/pt2/tracer/functional"
	"github.com/pt2go/pt2/tracer/nn"
)

// block is ResNet's basic block.
type block struct {
	Conv1, Conv2 *nn.Conv
	Bn1, Bn2     *nn.BatchNorm
	Downsample   *nn.Sequential
}

func newBlock(g *aten.Generator, in, out, stride int64) *block {
	b := &block{Conv1: nn.NewConv2d(g, in, out, 3, nn.Stride(stride), nn.Padding(1), nn.NoBias()), Bn1: nn.NewBatchNorm2d(out),
		Conv2: nn.NewConv2d(g, out, out, 3, nn.Padding(1), nn.NoBias()), Bn2: nn.NewBatchNorm2d(out)}
	if stride != 1 || in != out {
		b.Downsample = nn.NewSequential(nn.NewConv2d(g, in, out, 1, nn.Stride(stride), nn.NoBias()), nn.NewBatchNorm2d(out))
	}
	return b
}

func (b *block) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := f.Relu(tracer.Call1(b.Bn1, tracer.Call1(b.Conv1, x[0])))
	h = tracer.Call1(b.Bn2, tracer.Call1(b.Conv2, h))
	skip := x[0]
	if b.Downsample != nil {
		skip = tracer.Call1(b.Downsample, skip)
	}
	return []*tracer.Tensor{f.Relu(f.AddTensor(h, skip))}
}

// resnet is a ResNet of three stages.
type resnet struct {
	Conv1  *nn.Conv
	Bn1    *nn.BatchNorm
	Layer1 *nn.Sequential
	Layer2 *nn.Sequential
	Layer3 *nn.Sequential
	Fc     *nn.Linear
}

func newResnet(g *aten.Generator) *resnet {
	stage := func(in, out, stride int64) *nn.Sequential {
		return nn.NewSequential(newBlock(g, in, out, stride), newBlock(g, out, out, 1))
	}
	return &resnet{nn.NewConv2d(g, 3, 8, 7, nn.Stride(2), nn.Padding(3), nn.NoBias()), nn.NewBatchNorm2d(8), stage(8, 8, 1), stage(8, 16, 2), stage(16, 32, 2), nn.NewLinear(g, 32, 10)}
}

func (r *resnet) InputNames() []string { return []string{"x"} }

func (r *resnet) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := f.Relu(tracer.Call1(r.Bn1, tracer.Call1(r.Conv1, x[0])))
	h = f.MaxPool2d(h, []int64{3, 3}, f.Kw("stride", []int64{2, 2}), f.Kw("padding", []int64{1, 1}))
	for _, s := range []*nn.Sequential{r.Layer1, r.Layer2, r.Layer3} {
		h = tracer.Call1(s, h)
	}
	h = f.FlattenUsingInts(f.AdaptiveAvgPool2d(h, []int64{1, 1}), f.Kw("start_dim", 1))
	return []*tracer.Tensor{tracer.Call1(r.Fc, h)}
}

// bert is an encoder of token ids with types and a mask of what is there.
type bert struct {
	Words     *nn.Embedding
	Positions *nn.Embedding
	Types     *nn.Embedding
	Norm      *nn.LayerNorm
	Encoder   *nn.TransformerStack
	Pooler    *nn.Linear
}

func newBERT(g *aten.Generator) *bert {
	b := &bert{Words: nn.NewEmbedding(g, 50, 16, nn.PaddingIdx(0)), Positions: nn.NewEmbedding(g, 32, 16), Types: nn.NewEmbedding(g, 2, 16), Norm: nn.NewLayerNorm(16, nn.Eps(1e-12))}
	l := nn.NewTransformerEncoderLayer(g, 16, 4, nn.FeedForward(32), nn.ActivationName("gelu"), nn.BatchFirst())
	b.Encoder = nn.NewTransformerEncoder(l, 2, nil)
	b.Pooler = nn.NewLinear(g, 16, 16)
	return b
}

func (b *bert) InputNames() []string { return []string{"ids", "types", "mask"} }

func (b *bert) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	positions := f.Arange(x[0], x[0].Size(1), f.Kw("dtype", tensor.Int64))
	h := f.AddTensor(f.AddTensor(tracer.Call1(b.Words, x[0]), tracer.Call1(b.Types, x[1])), tracer.Call1(b.Positions, positions))
	h = tracer.Call1(b.Encoder, tracer.Call1(b.Norm, h), nil, f.EqScalar(x[2], 0))
	first := f.SelectInt(h, 1, 0)
	return []*tracer.Tensor{h, f.Tanh(tracer.Call1(b.Pooler, first))}
}

// gpt is a decoder of one layer that reads a token a call and keeps keys and values.
type gpt struct {
	Table        *nn.Embedding
	Norm1, Norm2 *nn.LayerNorm
	Qkv, Out     *nn.Linear
	Up, Down     *nn.Linear
	Keys, Values *tracer.Buffer
}

const (
	gptLength   = 12
	gptHeads    = 2
	gptFeatures = 8
)

func newGPT(g *aten.Generator) *gpt {
	cache := func() *tracer.Buffer {
		return &tracer.Buffer{T: tensor.New(tensor.Float32, 1, gptHeads, gptLength, gptFeatures/gptHeads), Persistent: false}
	}
	return &gpt{nn.NewEmbedding(g, 20, gptFeatures), nn.NewLayerNorm(gptFeatures), nn.NewLayerNorm(gptFeatures), nn.NewLinear(g, gptFeatures, 3*gptFeatures), nn.NewLinear(g, gptFeatures, gptFeatures),
		nn.NewLinear(g, gptFeatures, 4*gptFeatures), nn.NewLinear(g, 4*gptFeatures, gptFeatures), cache(), cache()}
}

func (m *gpt) InputNames() []string { return []string{"token", "position"} }

func (m *gpt) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	token, position := x[0], x[1]
	h := tracer.Call1(m.Table, token) // [1, 1, features]
	parts := f.SplitTensor(tracer.Call1(m.Qkv, tracer.Call1(m.Norm1, h)), gptFeatures, f.Kw("dim", -1))
	heads := func(t *tracer.Tensor) *tracer.Tensor {
		return f.TransposeInt(f.View(t, []int64{1, 1, gptHeads, gptFeatures / gptHeads}), 1, 2)
	}
	q := heads(parts[0])
	token.On("index_copy_", m.Keys, 2, position, heads(parts[1]))
	token.On("index_copy_", m.Values, 2, position, heads(parts[2]))
	seen := f.LeTensor(f.Arange(token, gptLength, f.Kw("dtype", tensor.Int64)), position)
	scores := f.MulTensor(f.Matmul(q, f.TransposeInt(token.Of(m.Keys), -2, -1)), f.ScalarTensor(token, 1/math.Sqrt(gptFeatures/gptHeads), f.Kw("dtype", tensor.Float32)))
	weights := f.SoftmaxInt(f.MaskedFillScalar(scores, f.LogicalNot(seen), math.Inf(-1)), -1)
	a := f.Reshape(f.TransposeInt(f.Matmul(weights, m.Values), 1, 2), []int64{1, 1, gptFeatures})
	h = f.AddTensor(h, tracer.Call1(m.Out, a))
	h = f.AddTensor(h, tracer.Call1(m.Down, f.Gelu(tracer.Call1(m.Up, tracer.Call1(m.Norm2, h)))))
	return []*tracer.Tensor{f.Linear(h, m.Table.Weight)} // tied
}

// tagger is an LSTM over token ids.
type tagger struct {
	Table *nn.Embedding
	Lstm  *nn.RNN
	Head  *nn.Linear
}

func (m *tagger) InputNames() []string { return []string{"ids"} }

func (m *tagger) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := tracer.Call(m.Lstm, tracer.Call1(m.Table, x[0]))[0]
	return []*tracer.Tensor{f.LogSoftmaxInt(tracer.Call1(m.Head, h), -1)}
}

func floats(sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Float32, sizes...)
	for i := range tensor.Data[float32](t) {
		tensor.Data[float32](t)[i] = float32(i*37%101)/25 - 2
	}
	return t
}

func ints(modulus int64, sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Int64, sizes...)
	for i := range tensor.Data[int64](t) {
		tensor.Data[int64](t)[i] = int64(i) * 7 % modulus
	}
	return t
}

type modelCase struct {
	model func() tracer.Module
	calls [][]*tensor.Tensor // the first are the example's
	opts  []tracer.Option
}

func models() map[string]modelCase {
	batch, length := tracer.MustDim("batch", tracer.Max(16)), tracer.MustDim("length", tracer.Min(2), tracer.Max(32))
	var dims []tracer.Option
	for _, in := range []string{"ids", "types", "mask"} {
		dims = append(dims, tracer.WithDynamic(in, 0, batch), tracer.WithDynamic(in, 1, length))
	}
	step := func(token, position int64) []*tensor.Tensor {
		a, b := tensor.New(tensor.Int64, 1, 1), tensor.New(tensor.Int64, 1)
		tensor.Data[int64](a)[0], tensor.Data[int64](b)[0] = token, position
		return []*tensor.Tensor{a, b}
	}
	return map[string]modelCase{
		"resnet": {func() tracer.Module { return newResnet(nn.Seed(3)) }, [][]*tensor.Tensor{{floats(2, 3, 33, 33)}, {floats(5, 3, 33, 33)}}, []tracer.Option{tracer.WithDynamic("x", 0, batch)}},
		"bert":   {func() tracer.Module { return newBERT(nn.Seed(4)) }, [][]*tensor.Tensor{{ints(50, 2, 6), ints(2, 2, 6), ints(3, 2, 6)}, {ints(50, 3, 9), ints(2, 3, 9), ints(3, 3, 9)}}, dims},
		"gpt":    {func() tracer.Module { return newGPT(nn.Seed(5)) }, [][]*tensor.Tensor{step(3, 0), step(7, 1), step(11, 2), step(0, 3)}, nil},
		"tagger": {func() tracer.Module {
			g := nn.Seed(6)
			return &tagger{nn.NewEmbedding(g, 30, 8), nn.NewLSTM(g, 8, 6, nn.Bidirectional(), nn.Layers(2), nn.BatchFirst()), nn.NewLinear(g, 12, 4)}
		}, [][]*tensor.Tensor{{ints(30, 2, 7)}, {ints(30, 4, 7)}}, []tracer.Option{tracer.WithDynamic("ids", 0, batch)}},
	}
}

// exportModel exports a model, and gives what its code computes for each call, on a model of its own: buffers move.
func exportModel(t *testing.T, c modelCase) (*export.Program, [][]*tensor.Tensor) {
	t.Helper()
	p, err := tracer.Export(c.model(), c.calls[0], c.opts...)
	if err != nil {
		t.Fatal(err)
	}
	m := c.model()
	var want [][]*tensor.Tensor
	for _, in := range c.calls {
		out, err := tracer.Run(m, nil, in...)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, out)
	}
	return p, want
}

// Whole models compute as programs what their code computes, call after call.
func TestModels(t *testing.T) {
	for name, c := range models() {
		t.Run(name, func(t *testing.T) {
			p, want := exportModel(t, c)
			run, err := interp.New(p, interp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, in := range c.calls {
				var args []any
				for _, x := range in {
					args = append(args, x)
				}
				out, err := run.Run(context.Background(), args...)
				if err != nil {
					t.Fatal(err)
				}
				near(t, name, tensors(out), want[i], 1e-5)
			}
		})
	}
}

// PyTorch loads the models, runs them with their guards, decomposed and unflattened, and computes the same.
func TestPyTorchRunsModels(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	for name, c := range models() {
		p, want := exportModel(t, c)
		if err := loader.SaveFile(filepath.Join(dir, name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		var calls []any
		for i, in := range c.calls {
			var a, b []any
			for _, x := range in {
				a = append(a, x)
			}
			for _, x := range want[i] {
				b = append(b, x)
			}
			calls = append(calls, []any{a, b})
		}
		if err := tensorio.SavePT(filepath.Join(dir, name+".calls"), calls); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(python, filepath.Join("testdata", "models.py"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
