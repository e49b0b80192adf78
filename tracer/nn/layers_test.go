package nn_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/nn"
)

type maker = func(g *aten.Generator) tracer.Module

func plain(m tracer.Module) maker { return func(*aten.Generator) tracer.Module { return m } }

// layers are those of testdata/layers.py, by its names.
var layers = map[string]maker{
	"linear":        func(g *aten.Generator) tracer.Module { return nn.NewLinear(g, 5, 7) },
	"linear-nobias": func(g *aten.Generator) tracer.Module { return nn.NewLinear(g, 5, 7, nn.NoBias()) },
	"bilinear":      func(g *aten.Generator) tracer.Module { return nn.NewBilinear(g, 5, 4, 3) },
	"identity":      plain(nn.NewIdentity()),
	"conv1d":        func(g *aten.Generator) tracer.Module { return nn.NewConv1d(g, 4, 6, 3, nn.Stride(2), nn.Padding(1)) },
	"conv2d": func(g *aten.Generator) tracer.Module {
		return nn.NewConv2d(g, 4, 6, 3, nn.Stride(2, 1), nn.Padding(1), nn.Dilation(2), nn.Groups(2))
	},
	"conv2d-rect": func(g *aten.Generator) tracer.Module { return nn.NewConv2dOf(g, 4, 6, [2]int64{3, 1}, nn.NoBias()) },
	"conv3d":      func(g *aten.Generator) tracer.Module { return nn.NewConv3d(g, 4, 6, 2) },
	"conv2d-same": func(g *aten.Generator) tracer.Module { return nn.NewConv2d(g, 4, 6, 4, nn.PaddingSame()) },
	"conv2d-reflect": func(g *aten.Generator) tracer.Module {
		return nn.NewConv2d(g, 4, 6, 3, nn.Padding(1), nn.PaddingMode("reflect"))
	},
	"conv1d-circular": func(g *aten.Generator) tracer.Module {
		return nn.NewConv1d(g, 4, 6, 3, nn.Padding(2), nn.PaddingMode("circular"))
	},
	"conv2d-replicate-same": func(g *aten.Generator) tracer.Module {
		return nn.NewConv2d(g, 4, 6, 4, nn.PaddingSame(), nn.PaddingMode("replicate"))
	},
	"conv2d-single":   func(g *aten.Generator) tracer.Module { return nn.NewConv2d(g, 4, 6, 3) },
	"convtranspose1d": func(g *aten.Generator) tracer.Module { return nn.NewConvTranspose1d(g, 4, 6, 3, nn.Stride(2)) },
	"convtranspose2d": func(g *aten.Generator) tracer.Module {
		return nn.NewConvTranspose2d(g, 4, 6, 3, nn.Stride(2), nn.Padding(1), nn.OutputPadding(1), nn.Groups(2))
	},
	"convtranspose3d":    func(g *aten.Generator) tracer.Module { return nn.NewConvTranspose3d(g, 4, 2, 2, nn.Dilation(2)) },
	"batchnorm1d":        plain(nn.NewBatchNorm1d(5)),
	"batchnorm2d":        plain(nn.NewBatchNorm2d(4, nn.Eps(1e-3))),
	"batchnorm3d":        plain(nn.NewBatchNorm3d(4, nn.NoAffine())),
	"batchnorm-stats":    plain(nn.NewBatchNorm2d(4, nn.NoRunningStats())),
	"instancenorm1d":     plain(nn.NewInstanceNorm1d(4)),
	"instancenorm2d":     plain(nn.NewInstanceNorm2d(4, nn.Affine())),
	"instancenorm3d":     plain(nn.NewInstanceNorm3d(4, nn.TrackRunningStats())),
	"layernorm":          plain(nn.NewLayerNorm(5)),
	"layernorm-2":        plain(nn.NewLayerNormOf([]int64{6, 6}, nn.NoAffine())),
	"layernorm-nobias":   plain(nn.NewLayerNorm(5, nn.NoBias())),
	"rmsnorm":            plain(nn.NewRMSNorm(5)),
	"rmsnorm-eps":        plain(nn.NewRMSNorm(5, nn.Eps(1e-2), nn.NoAffine())),
	"groupnorm":          plain(nn.NewGroupNorm(2, 4)),
	"localresponse":      plain(nn.NewLocalResponseNorm(3)),
	"localresponse1d":    plain(nn.NewLocalResponseNorm(2)),
	"embedding":          func(g *aten.Generator) tracer.Module { return nn.NewEmbedding(g, 10, 4, nn.PaddingIdx(2)) },
	"embedding-negative": func(g *aten.Generator) tracer.Module { return nn.NewEmbedding(g, 10, 4, nn.PaddingIdx(-1)) },
	"embeddingbag":       func(g *aten.Generator) tracer.Module { return nn.NewEmbeddingBag(g, 10, 4) },
	"embeddingbag-2d":    func(g *aten.Generator) tracer.Module { return nn.NewEmbeddingBag(g, 10, 4, nn.Mode("max")) },
	"embeddingbag-sum": func(g *aten.Generator) tracer.Module {
		return nn.NewEmbeddingBag(g, 10, 4, nn.Mode("sum"), nn.IncludeLastOffset())
	},
	"embeddingbag-padding": func(g *aten.Generator) tracer.Module { return nn.NewEmbeddingBag(g, 10, 4, nn.PaddingIdx(7)) },
	"relu":                 plain(nn.ReLU()), "relu6": plain(nn.ReLU6()), "leakyrelu": plain(nn.LeakyReLU(0.2)), "elu": plain(nn.ELU(0.5)), "selu": plain(nn.SELU()),
	"celu": plain(nn.CELU(0.7)), "gelu": plain(nn.GELU()), "gelu-tanh": plain(nn.GELUTanh()), "silu": plain(nn.SiLU()), "mish": plain(nn.Mish()),
	"sigmoid": plain(nn.Sigmoid()), "logsigmoid": plain(nn.LogSigmoid()), "tanh": plain(nn.Tanh()), "tanhshrink": plain(nn.Tanhshrink()),
	"softplus": plain(nn.Softplus(2, 3)), "softsign": plain(nn.Softsign()), "hardtanh": plain(nn.Hardtanh(-0.5, 1)), "hardswish": plain(nn.Hardswish()),
	"hardsigmoid": plain(nn.Hardsigmoid()), "hardshrink": plain(nn.Hardshrink(0.7)), "softshrink": plain(nn.Softshrink(0.3)), "threshold": plain(nn.Threshold(0.1, 20)),
	"softmax": plain(nn.Softmax(1)), "logsoftmax": plain(nn.LogSoftmax(0)), "softmin": plain(nn.Softmin(1)), "glu": plain(nn.GLU(1)),
	"prelu": plain(nn.NewPReLU(1)), "prelu-channels": plain(nn.NewPReLU(4)), "rrelu": plain(nn.NewRReLU(1.0/8, 1.0/3)),
	"dropout": plain(nn.NewDropout(0.3)), "dropout1d": plain(nn.NewDropout1d(0.3)), "dropout2d": plain(nn.NewDropout2d(0.3)), "dropout3d": plain(nn.NewDropout3d(0.3)),
	"alphadropout": plain(nn.NewAlphaDropout(0.3)),
	"maxpool1d":    plain(nn.NewMaxPool1d(2)), "maxpool2d": plain(nn.NewMaxPool2d(3, nn.Stride(2), nn.Padding(1), nn.CeilMode())),
	"maxpool3d": plain(nn.NewMaxPool3d(2, nn.Dilation(2))), "maxpool-indices": plain(nn.NewMaxPool2d(2, nn.ReturnIndices())),
	"avgpool1d": plain(nn.NewAvgPool1d(3, nn.Stride(1), nn.Padding(1))), "avgpool2d": plain(nn.NewAvgPool2d(3, nn.Stride(2), nn.Padding(1), nn.ExcludePadding())),
	"avgpool3d": plain(nn.NewAvgPool3d(2, nn.Divisor(3))), "adaptiveavg1d": plain(nn.NewAdaptiveAvgPool1d(4)), "adaptiveavg2d": plain(nn.NewAdaptiveAvgPool2d(1)),
	"adaptiveavg3d": plain(nn.NewAdaptiveAvgPool3d(1, 2, 3)), "adaptivemax1d": plain(nn.NewAdaptiveMaxPool1d(4)), "adaptivemax2d": plain(nn.NewAdaptiveMaxPool2d(2, 3)),
	"adaptivemax3d": plain(nn.NewAdaptiveMaxPool3d(1, 2, 2, nn.ReturnIndices())),
	"zeropad":       plain(nn.NewZeroPad(1, 0, 2, 1)), "constantpad": plain(nn.NewConstantPad(3.5, 1, 2)), "reflectionpad": plain(nn.NewReflectionPad(1, 2, 0, 3)),
	"replicationpad": plain(nn.NewReplicationPad(1, 1, 0, 1, 2, 0)), "circularpad": plain(nn.NewCircularPad(1, 2, 1, 0)),
	"rnn": func(g *aten.Generator) tracer.Module { return nn.NewRNN(g, 8, 6) },
	"rnn-relu": func(g *aten.Generator) tracer.Module {
		return nn.NewRNN(g, 8, 6, nn.Layers(2), nn.Nonlinearity("relu"), nn.NoBias())
	},
	"lstm": func(g *aten.Generator) tracer.Module { return nn.NewLSTM(g, 8, 6) },
	"lstm-deep": func(g *aten.Generator) tracer.Module {
		return nn.NewLSTM(g, 8, 6, nn.Layers(2), nn.Bidirectional(), nn.BatchFirst(), nn.DropoutP(0.5))
	},
	"lstm-proj":       func(g *aten.Generator) tracer.Module { return nn.NewLSTM(g, 8, 6, nn.ProjSize(3)) },
	"lstm-single":     func(g *aten.Generator) tracer.Module { return nn.NewLSTM(g, 8, 6) },
	"gru":             func(g *aten.Generator) tracer.Module { return nn.NewGRU(g, 8, 6, nn.Bidirectional()) },
	"rnncell":         func(g *aten.Generator) tracer.Module { return nn.NewRNNCell(g, 8, 6) },
	"lstmcell":        func(g *aten.Generator) tracer.Module { return nn.NewLSTMCell(g, 8, 6) },
	"grucell":         func(g *aten.Generator) tracer.Module { return nn.NewGRUCell(g, 8, 6, nn.NoBias()) },
	"attention":       func(g *aten.Generator) tracer.Module { return nn.NewMultiheadAttention(g, 8, 2) },
	"attention-cross": func(g *aten.Generator) tracer.Module { return nn.NewMultiheadAttention(g, 8, 2, nn.NoBias()) },
	"attention-masks": func(g *aten.Generator) tracer.Module {
		m := nn.NewMultiheadAttention(g, 8, 2)
		m.NeedWeights = true
		return m
	},
	"attention-dims": func(g *aten.Generator) tracer.Module {
		return nn.NewMultiheadAttention(g, 8, 2, nn.KeyValueDims(5, 3), nn.BatchFirst())
	},
	"attention-extra": func(g *aten.Generator) tracer.Module {
		return nn.NewMultiheadAttention(g, 8, 2, nn.AddBiasKV(), nn.AddZeroAttn())
	},
	"attention-single": func(g *aten.Generator) tracer.Module { return nn.NewMultiheadAttention(g, 8, 4) },
	"encoderlayer": func(g *aten.Generator) tracer.Module {
		return nn.NewTransformerEncoderLayer(g, 8, 2, nn.FeedForward(16))
	},
	"encoderlayer-first": func(g *aten.Generator) tracer.Module {
		return nn.NewTransformerEncoderLayer(g, 8, 2, nn.FeedForward(16), nn.ActivationName("gelu"), nn.NormFirst(), nn.BatchFirst(), nn.NoBias())
	},
	"decoderlayer": func(g *aten.Generator) tracer.Module {
		return nn.NewTransformerDecoderLayer(g, 8, 2, nn.FeedForward(16))
	},
	"encoder": func(g *aten.Generator) tracer.Module {
		return nn.NewTransformerEncoder(nn.NewTransformerEncoderLayer(g, 8, 2, nn.FeedForward(16)), 2, nn.NewLayerNorm(8))
	},
	"decoder": func(g *aten.Generator) tracer.Module {
		return nn.NewTransformerDecoder(nn.NewTransformerDecoderLayer(g, 8, 2, nn.FeedForward(16)), 2, nil)
	},
	"sequential": func(g *aten.Generator) tracer.Module {
		return nn.NewSequential(nn.NewConv2d(g, 4, 3, 1), nn.NewFlatten(), nn.NewLinear(g, 108, 2))
	},
	"flatten": plain(nn.NewFlattenOf(2, -1)), "unflatten": plain(nn.NewUnflatten(1, 2, -1)),
	"pixelshuffle": plain(nn.NewPixelShuffle(2)), "pixelunshuffle": plain(nn.NewPixelUnshuffle(3)), "channelshuffle": plain(nn.NewChannelShuffle(2)),
	"unfold": plain(nn.NewUnfold(3, nn.Padding(1), nn.Stride(2))), "fold": plain(nn.NewFold(4, 4, 2, nn.Stride(2))),
	"upsample": plain(nn.NewUpsampleBy([]float64{2})), "upsample-size": plain(nn.NewUpsample([]int64{9, 4}, nn.Mode("bilinear"), nn.AlignCorners())),
	"upsample-bicubic": plain(nn.NewUpsampleBy([]float64{1.5, 2}, nn.Mode("bicubic"))), "upsample-linear": plain(nn.NewUpsample([]int64{13}, nn.Mode("linear"))),
	"upsample-exact": plain(nn.NewUpsample([]int64{4}, nn.Mode("nearest-exact"))), "upsample-trilinear": plain(nn.NewUpsampleBy([]float64{2}, nn.Mode("trilinear"))),
	"cosine": plain(nn.NewCosineSimilarity(1)), "pairwise": plain(nn.NewPairwiseDistance(2)),
	"mse": plain(nn.MSELoss()), "l1": plain(nn.L1Loss()), "smoothl1": plain(nn.SmoothL1Loss()), "huber": plain(nn.HuberLoss()),
	"crossentropy": plain(nn.CrossEntropyLoss()), "nll": plain(nn.NLLLoss()), "bce": plain(nn.BCELoss()), "bcelogits": plain(nn.BCEWithLogitsLoss()),
}

// model is a layer as a model of its own.
type model struct {
	Layer  tracer.Module
	inputs int
}

func (m *model) InputNames() []string { return strings.Split("abcdef", "")[:m.inputs] }

func (m *model) Forward(x ...*tracer.Tensor) []*tracer.Tensor { return tracer.Call(m.Layer, x...) }

// expected is what PyTorch's layer is and computes.
type expected struct {
	names           []string
	state           []*tensor.Tensor
	inputs, outputs []*tensor.Tensor
}

func goldens(t *testing.T) map[string]expected {
	t.Helper()
	doc, err := tensorio.LoadPT(filepath.Join("testdata", "layers.pt"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]expected{}
	for name, d := range fields(t, doc) {
		f := fields(t, d)
		e := expected{state: tensors(f["state"]), inputs: tensors(f["inputs"]), outputs: tensors(f["outputs"])}
		for _, n := range f["names"].([]any) {
			e.names = append(e.names, n.(string))
		}
		out[name] = e
	}
	return out
}

func fields(t *testing.T, v any) map[string]any {
	t.Helper()
	out := map[string]any{}
	d := v.(*tensorio.Dict)
	for i, k := range d.Keys {
		out[k.(string)] = d.Values[i]
	}
	return out
}

func tensors(v any) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, x := range v.([]any) {
		out = append(out, x.(*tensor.Tensor))
	}
	return out
}

func near(t *testing.T, name string, got, want []*tensor.Tensor, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d results, want %d", name, len(got), len(want))
		return
	}
	for i := range want {
		if !slices.Equal(got[i].Sizes(), want[i].Sizes()) || got[i].DType() != want[i].DType() {
			t.Errorf("%s: result %d is %v %v, want %v %v", name, i, got[i].DType(), got[i].Sizes(), want[i].DType(), want[i].Sizes())
			continue
		}
		if want[i].DType() != tensor.Float32 {
			if !slices.Equal(tensor.Contiguous[int64](got[i]), tensor.Contiguous[int64](want[i])) {
				t.Errorf("%s: result %d differs", name, i)
			}
			continue
		}
		x, y := tensor.Contiguous[float32](got[i]), tensor.Contiguous[float32](want[i])
		for j := range y {
			if d := float64(x[j] - y[j]); !(d <= tolerance && d >= -tolerance) {
				t.Errorf("%s: result %d, element %d: %g, want %g", name, i, j, x[j], y[j])
				break
			}
		}
	}
}

// Every layer has the state dict of PyTorch's, with the numbers that PyTorch's begins with, and computes the same, eagerly and as a program.
func TestLayersAsPyTorchs(t *testing.T) {
	want := goldens(t)
	for name := range want {
		if layers[name] == nil {
			t.Errorf("there is no layer %s", name)
		}
	}
	for name, make := range layers {
		w, ok := want[name]
		if !ok {
			t.Errorf("testdata has no layer %s", name)
			continue
		}
		m := make(nn.Seed(0))
		names, state, err := tracer.StateDict(m)
		if err != nil || !slices.Equal(names, w.names) {
			t.Errorf("%s: state dict %q, want %q (%v)", name, names, w.names, err)
			continue
		}
		rounding := 0.0
		if strings.HasPrefix(name, "embedding") || name == "attention-extra" { // normal numbers: PyTorch's logarithm rounds otherwise
			rounding = 3e-7
		}
		near(t, name+"'s state", state, w.state, rounding)
		got, err := tracer.Run(m, nil, w.inputs...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		near(t, name, got, w.outputs, 2e-6)
		near(t, name+" exported", exported(t, name, m, w.inputs, ""), w.outputs, 1e-5)
	}
}

// exported runs the layer as a program that was saved and loaded.
func exported(t *testing.T, name string, m tracer.Module, inputs []*tensor.Tensor, dir string) []*tensor.Tensor {
	t.Helper()
	p, err := tracer.Export(&model{m, len(inputs)}, inputs)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	var b bytes.Buffer
	if err := loader.Save(&b, p, loader.SaveOptions{}); err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	if dir != "" {
		if err := loader.SaveFile(filepath.Join(dir, name+".pt2"), p, loader.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := loader.OpenBytes(b.Bytes(), loader.Options{})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	run, err := interp.New(c.Programs["model"], interp.Options{})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	var args []any
	for _, x := range inputs {
		args = append(args, x)
	}
	out, err := run.Run(context.Background(), args...)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	return tensors(out)
}

// PyTorch loads every layer's program, runs, decomposes and unflattens it, and computes what its own layer does.
func TestPyTorchRunsLayers(t *testing.T) {
	python, dir := golden.Python(t), t.TempDir()
	for name, w := range goldens(t) {
		exported(t, name, layers[name](nn.Seed(0)), w.inputs, dir)
	}
	if out, err := exec.Command(python, filepath.Join("testdata", "layers.py"), "judge", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestRefusals(t *testing.T) {
	g := nn.Seed(0)
	x := tensor.New(tensor.Float32, 2, 4, 6, 6)
	for _, c := range []struct {
		m    tracer.Module
		text string
	}{
		{nn.NewConv2d(g, 4, 6, 3, nn.Groups(3)), "Conv2d: in_channels must be divisible by groups"},
		{nn.NewConv2d(g, 4, 6, 3, nn.Stride(1, 2, 3)), "Stride takes 1 or 2 numbers, not 3"},
		{nn.NewConv2d(g, 4, 6, 3, nn.CeilMode()), "there is no option CeilMode"},
		{nn.NewConv2d(g, 4, 6, 3, nn.PaddingSame(), nn.Stride(2)), "not supported for strided"},
		{nn.NewGroupNorm(3, 4), "num_channels must be divisible by num_groups"},
		{nn.NewMultiheadAttention(g, 7, 2), "embed_dim must be divisible by num_heads"},
		{nn.NewLSTM(g, 4, 3, nn.ProjSize(3)), "proj_size has to be smaller than hidden_size"},
		{nn.NewDropout(1.5), "dropout probability has to be between 0 and 1"},
		{nn.NewUpsampleBy([]float64{2}, nn.Mode("trilinear")), "mode trilinear takes 5 dimensions, not 4"},
		{nn.NewModuleList(nn.ReLU()), "a list cannot be called"},
		{nn.NewModuleDict().Set("a", nn.ReLU()), "a dict cannot be called"},
	} {
		var user *tracer.UserError
		if _, err := tracer.Run(c.m, nil, x); !errors.As(err, &user) || user.Kind != tracer.InvalidInput || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v, want %q", err, c.text)
		}
	}
}

// In training, dropout draws PyTorch's numbers, and a batch norm moves its statistics.
func TestTrain(t *testing.T) {
	norm := nn.NewBatchNorm1d(3)
	m := nn.NewSequential(norm, nn.NewDropout(0.5))
	if err := nn.Train(m, true); err != nil {
		t.Fatal(err)
	}
	x := tensor.New(tensor.Float32, 4, 3)
	for i := range tensor.Data[float32](x) {
		tensor.Data[float32](x)[i] = float32(i)
	}
	out, err := tracer.Run(m, nil, x)
	if err != nil {
		t.Fatal(err)
	}
	if n := tensor.Data[int64](norm.NumBatchesTracked.T)[0]; n != 1 {
		t.Errorf("%d batches, want 1", n)
	}
	if got := tensor.Data[float32](norm.RunningMean.T)[2]; got != 0.1*6.5 {
		t.Errorf("running mean %g, want 0.65", got)
	}
	zeros := 0
	for _, v := range tensor.Contiguous[float32](out[0]) {
		if v == 0 {
			zeros++
		}
	}
	if zeros == 0 || zeros == 12 {
		t.Errorf("dropout leaves %d of 12 elements", 12-zeros)
	}
	if err := nn.Train(m, false); err != nil || norm.Training {
		t.Error("still training")
	}
}
