package nn

import (
	"fmt"

	"github.com/pt2go/pt2/tracer"
)

// NewPixelShuffle makes images larger by r from r*r times as many channels.
func NewPixelShuffle(r int64) *Activation {
	return &Activation{layer{class: "pixelshuffle.PixelShuffle"}, "pixel_shuffle", []any{r}}
}

// NewPixelUnshuffle undoes [NewPixelShuffle].
func NewPixelUnshuffle(r int64) *Activation {
	return &Activation{layer{class: "pixelshuffle.PixelUnshuffle"}, "pixel_unshuffle", []any{r}}
}

// NewChannelShuffle mixes the channels of groups.
func NewChannelShuffle(groups int64) *Activation {
	return &Activation{layer{class: "channelshuffle.ChannelShuffle"}, "channel_shuffle", []any{groups}}
}

// NewUnfold takes the windows of images apart: [N, C, H, W] becomes [N, C*kernel*kernel, windows]. Options: [Dilation], [Padding], [Stride].
func NewUnfold(kernel int64, opts ...Option) *Activation {
	a := &Activation{layer: layer{class: "fold.Unfold"}, op: "im2col"}
	o := a.collect(options{}, opts, "Dilation", "Padding", "Stride")
	a.args = []any{[]int64{kernel, kernel}, a.perDim("Dilation", o.dilation, 2, 1), a.perDim("Padding", o.padding, 2, 0), a.perDim("Stride", o.stride, 2, 1)}
	return a
}

// NewFold adds windows up to images of a height and width: [N, C*kernel*kernel, windows] becomes [N, C, H, W]. Options as [NewUnfold].
func NewFold(height, width, kernel int64, opts ...Option) *Activation {
	a := &Activation{layer: layer{class: "fold.Fold"}, op: "col2im"}
	o := a.collect(options{}, opts, "Dilation", "Padding", "Stride")
	a.args = []any{[]int64{height, width}, []int64{kernel, kernel}, a.perDim("Dilation", o.dilation, 2, 1), a.perDim("Padding", o.padding, 2, 0), a.perDim("Stride", o.stride, 2, 1)}
	return a
}

// Upsample resizes [N, C, ...] to a size or by a factor.
type Upsample struct {
	layer
	size  []int64
	scale []float64
	mode  string
	align bool
}

// NewUpsample resizes to the given sizes. Options: [Mode] ("nearest" by default), [AlignCorners].
func NewUpsample(size []int64, opts ...Option) *Upsample {
	u := &Upsample{layer: layer{class: "upsampling.Upsample"}, size: size}
	u.set(u.collect(options{mode: "nearest"}, opts, "Mode", "AlignCorners"))
	return u
}

// NewUpsampleBy resizes by factors, one for all dimensions or one each. Options as [NewUpsample].
func NewUpsampleBy(factors []float64, opts ...Option) *Upsample {
	u := &Upsample{layer: layer{class: "upsampling.Upsample"}, scale: factors}
	u.set(u.collect(options{mode: "nearest"}, opts, "Mode", "AlignCorners"))
	return u
}

func (u *Upsample) set(o options) {
	u.mode, u.align = o.mode, o.alignCorners
	switch u.mode {
	case "nearest", "nearest-exact":
		if u.align {
			u.refuse("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
		}
	case "linear", "bilinear", "bicubic", "trilinear":
	default:
		u.refuse(fmt.Sprintf("there is no mode %q", u.mode))
	}
}

// upsampleDims are the dimensions that a mode resizes.
var upsampleDims = map[string]int{"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}

// Forward implements [tracer.Module].
func (u *Upsample) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	u.check()
	dims := x[0].Dim() - 2
	name, args := map[string]string{"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact"}[u.mode], []any{nil}
	if name == "" {
		name = "upsample_" + u.mode
		args = append(args, u.align)
		if dims != upsampleDims[u.mode] {
			panic(&tracer.UserError{Kind: tracer.InvalidInput, Msg: fmt.Sprintf("Upsample: mode %s takes %d dimensions, not %d", u.mode, upsampleDims[u.mode]+2, x[0].Dim())})
		}
	}
	if u.size != nil {
		args[0] = u.perDim("the size", u.size, dims, 1)
		args = append(args, nil)
	} else {
		factors := u.scale
		if len(factors) == 1 {
			for len(factors) < dims {
				factors = append(factors[:len(factors):len(factors)], u.scale[0])
			}
		}
		args = append(args, factors)
	}
	return one(x[0].Op(fmt.Sprintf("%s%dd.vec", name, dims), args...))
}

// CosineSimilarity compares two tensors along a dimension.
type CosineSimilarity struct {
	layer
	dim int
	eps float64
}

// NewCosineSimilarity compares along dim. Options: [Eps].
func NewCosineSimilarity(dim int, opts ...Option) *CosineSimilarity {
	c := &CosineSimilarity{layer: layer{class: "distance.CosineSimilarity"}, dim: dim}
	c.eps = c.collect(options{eps: 1e-8}, opts, "Eps").eps
	return c
}

// Forward implements [tracer.Module].
func (c *CosineSimilarity) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	c.check()
	return one(x[0].Op("cosine_similarity", x[1], c.dim, c.eps))
}

// PairwiseDistance is the p-norm of the difference along the last dimension.
type PairwiseDistance struct {
	layer
	p, eps float64
}

// NewPairwiseDistance makes a layer. Options: [Eps].
func NewPairwiseDistance(p float64, opts ...Option) *PairwiseDistance {
	d := &PairwiseDistance{layer: layer{class: "distance.PairwiseDistance"}, p: p}
	d.eps = d.collect(options{eps: 1e-6}, opts, "Eps").eps
	return d
}

// Forward implements [tracer.Module].
func (d *PairwiseDistance) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	d.check()
	return one(x[0].Op("pairwise_distance", x[1], d.p, d.eps))
}

// Loss compares a prediction with a target; the mean is taken.
type Loss struct {
	layer
	op   string
	args []any
}

func loss(op, class string, args ...any) *Loss {
	return &Loss{layer{class: "loss." + class}, op, args}
}

// Forward implements [tracer.Module].
func (l *Loss) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op(l.op, append([]any{x[1]}, l.args...)...))
}

// MSELoss is the mean square difference.
func MSELoss() *Loss { return loss("mse_loss", "MSELoss") }

// L1Loss is the mean distance.
func L1Loss() *Loss { return loss("l1_loss", "L1Loss") }

// SmoothL1Loss is the square near 0, the distance beyond 1.
func SmoothL1Loss() *Loss { return loss("smooth_l1_loss", "SmoothL1Loss") }

// HuberLoss is half the square near 0, the distance beyond 1.
func HuberLoss() *Loss { return loss("huber_loss", "HuberLoss") }

// CrossEntropyLoss compares scores [N, classes, ...] with classes [N, ...].
func CrossEntropyLoss() *Loss { return loss("cross_entropy_loss", "CrossEntropyLoss") }

// NLLLoss compares log-probabilities [N, classes, ...] with classes [N, ...].
func NLLLoss() *Loss { return loss("nll_loss_nd", "NLLLoss") }

// BCELoss compares probabilities with targets between 0 and 1.
func BCELoss() *Loss { return loss("binary_cross_entropy", "BCELoss") }

// BCEWithLogitsLoss compares scores with targets between 0 and 1.
func BCEWithLogitsLoss() *Loss {
	return loss("binary_cross_entropy_with_logits", "BCEWithLogitsLoss")
}
