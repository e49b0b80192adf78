package nn

import (
	"fmt"
	"slices"
)

// Option is an argument of a layer that has a default.
type Option struct {
	name string
	set  func(o *options)
}

// options are the values of all of them.
type options struct {
	stride, padding, dilation, outputPadding []int64
	groups                                   int64
	noBias                                   bool
	paddingMode                              string
	samePadding                              bool
	eps, momentum                            float64

	noAffine, noTrack, track  bool
	ceilMode, noCountPad      bool
	divisor                   any
	returnIndices             bool
	paddingIdx                *int64
	mode                      string
	includeLast               bool
	layers                    int64
	dropout                   float64
	batchFirst, bidirectional bool
	projSize                  int64
	nonlinearity              string
	biasKV, zeroAttn          bool
	kdim, vdim                int64
	activation                string
	normFirst                 bool
	feedForward               int64
	alignCorners              bool
}

// Stride is the step of a window: one number for all dimensions, or one each.
func Stride(n ...int64) Option { return Option{"Stride", func(o *options) { o.stride = n }} }

// Padding is by how many elements each side is extended: one number for all dimensions, or one each.
func Padding(n ...int64) Option { return Option{"Padding", func(o *options) { o.padding = n }} }

// PaddingSame extends a convolution's input so that the output has its size; the stride is 1.
func PaddingSame() Option { return Option{"PaddingSame", func(o *options) { o.samePadding = true }} }

// PaddingMode tells what a convolution's padding is made of: "zeros", "reflect", "replicate" or "circular".
func PaddingMode(mode string) Option {
	return Option{"PaddingMode", func(o *options) { o.paddingMode = mode }}
}

// Dilation is the distance of a window's elements: one number for all dimensions, or one each.
func Dilation(n ...int64) Option { return Option{"Dilation", func(o *options) { o.dilation = n }} }

// OutputPadding extends one side of a transposed convolution's output.
func OutputPadding(n ...int64) Option {
	return Option{"OutputPadding", func(o *options) { o.outputPadding = n }}
}

// Groups parts the channels of a convolution into groups that do not see each other.
func Groups(n int64) Option { return Option{"Groups", func(o *options) { o.groups = n }} }

// NoBias leaves out the bias.
func NoBias() Option { return Option{"NoBias", func(o *options) { o.noBias = true }} }

// Eps is what a normalisation adds to the variance, or a distance to its operands.
func Eps(x float64) Option { return Option{"Eps", func(o *options) { o.eps = x }} }

// Momentum is the weight of a batch in the running statistics of a batch or instance norm.
func Momentum(x float64) Option {
	return Option{"Momentum", func(o *options) { o.momentum = x }}
}

// NoAffine leaves out weight and bias of a normalisation.
func NoAffine() Option { return Option{"NoAffine", func(o *options) { o.noAffine = true }} }

// Affine gives an instance norm weight and bias, which it has not by default.
func Affine() Option { return Option{"Affine", func(o *options) { o.noAffine = false }} }

// NoRunningStats makes a batch norm use the batch's statistics always.
func NoRunningStats() Option { return Option{"NoRunningStats", func(o *options) { o.noTrack = true }} }

// TrackRunningStats makes an instance norm keep running statistics.
func TrackRunningStats() Option {
	return Option{"TrackRunningStats", func(o *options) { o.track = true }}
}

// CeilMode makes a pooling keep a last window that is not full.
func CeilMode() Option { return Option{"CeilMode", func(o *options) { o.ceilMode = true }} }

// ExcludePadding makes an average pooling divide by the elements that exist only.
func ExcludePadding() Option {
	return Option{"ExcludePadding", func(o *options) { o.noCountPad = true }}
}

// Divisor is what an average pooling divides its sums by.
func Divisor(n int64) Option { return Option{"Divisor", func(o *options) { o.divisor = n }} }

// ReturnIndices makes a maximum pooling give where the maxima are as a second result.
func ReturnIndices() Option {
	return Option{"ReturnIndices", func(o *options) { o.returnIndices = true }}
}

// PaddingIdx is the entry of an embedding that stays zero; a negative one counts from the end.
func PaddingIdx(i int64) Option { return Option{"PaddingIdx", func(o *options) { o.paddingIdx = &i }} }

// Mode is how a bag is reduced ("sum", "mean", "max"), or how an image is resized ("nearest", "nearest-exact", "linear", "bilinear", "bicubic",
// "trilinear").
func Mode(m string) Option { return Option{"Mode", func(o *options) { o.mode = m }} }

// IncludeLastOffset tells that a bag's offsets end with the number of indices.
func IncludeLastOffset() Option {
	return Option{"IncludeLastOffset", func(o *options) { o.includeLast = true }}
}

// Layers is the number of recurrent layers, one upon the other.
func Layers(n int64) Option { return Option{"Layers", func(o *options) { o.layers = n }} }

// DropoutP is the probability of dropout within a layer, in training.
func DropoutP(p float64) Option { return Option{"DropoutP", func(o *options) { o.dropout = p }} }

// BatchFirst makes sequences [batch, time, features], which are [time, batch, features] by default.
func BatchFirst() Option { return Option{"BatchFirst", func(o *options) { o.batchFirst = true }} }

// Bidirectional adds a recurrent layer that goes from the end to the beginning.
func Bidirectional() Option {
	return Option{"Bidirectional", func(o *options) { o.bidirectional = true }}
}

// ProjSize projects the states of an LSTM to this size.
func ProjSize(n int64) Option { return Option{"ProjSize", func(o *options) { o.projSize = n }} }

// Nonlinearity is that of a plain recurrent layer: "tanh" or "relu".
func Nonlinearity(f string) Option {
	return Option{"Nonlinearity", func(o *options) { o.nonlinearity = f }}
}

// AddBiasKV gives an attention a learnt key and value more.
func AddBiasKV() Option { return Option{"AddBiasKV", func(o *options) { o.biasKV = true }} }

// AddZeroAttn gives an attention a key and value of zeros more.
func AddZeroAttn() Option { return Option{"AddZeroAttn", func(o *options) { o.zeroAttn = true }} }

// KeyValueDims are the features of an attention's keys and values, where they are not those of its queries.
func KeyValueDims(k, v int64) Option {
	return Option{"KeyValueDims", func(o *options) { o.kdim, o.vdim = k, v }}
}

// FeedForward is the width of a transformer layer's hidden layer, 2048 by default.
func FeedForward(n int64) Option {
	return Option{"FeedForward", func(o *options) { o.feedForward = n }}
}

// ActivationName is the activation of a transformer layer: "relu" or "gelu".
func ActivationName(f string) Option {
	return Option{"ActivationName", func(o *options) { o.activation = f }}
}

// NormFirst makes a transformer layer normalise before attention and feed-forward, not after.
func NormFirst() Option { return Option{"NormFirst", func(o *options) { o.normFirst = true }} }

// AlignCorners makes the corners of an image stay where they are when it is resized.
func AlignCorners() Option { return Option{"AlignCorners", func(o *options) { o.alignCorners = true }} }

// collect applies options; the layer refuses those that it does not have.
func (l *layer) collect(o options, given []Option, known ...string) options {
	for _, g := range given {
		if !slices.Contains(known, g.name) {
			l.refuse(fmt.Sprintf("there is no option %s; it has %v", g.name, known))
			continue
		}
		g.set(&o)
	}
	return o
}

// perDim gives a number for each of n dimensions.
func (l *layer) perDim(what string, v []int64, n int, otherwise int64) []int64 {
	switch len(v) {
	case n:
		return v
	case 0, 1:
		if len(v) == 1 {
			otherwise = v[0]
		}
		return slices.Repeat([]int64{otherwise}, n)
	}
	l.refuse(fmt.Sprintf("%s takes 1 or %d numbers, not %d", what, n, len(v)))
	return slices.Repeat([]int64{otherwise}, n)
}
