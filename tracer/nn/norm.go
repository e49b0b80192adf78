package nn

import (
	"fmt"

	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// BatchNorm normalises channels: x is [N, C] or [N, C, ...]. In training it takes the batch's statistics and updates the running ones.
type BatchNorm struct {
	layer
	Weight            *tracer.Parameter
	Bias              *tracer.Parameter
	RunningMean       *tracer.Buffer
	RunningVar        *tracer.Buffer
	NumBatchesTracked *tracer.Buffer
	Training          bool

	momentum, eps float64
	instance      bool
	dims          int
}

// NewBatchNorm1d normalises [N, C] or [N, C, L]. Options: [Eps], [Momentum], [NoAffine], [NoRunningStats].
func NewBatchNorm1d(features int64, opts ...Option) *BatchNorm {
	return newBatchNorm(features, 1, opts)
}

// NewBatchNorm2d normalises [N, C, H, W]. Options as [NewBatchNorm1d].
func NewBatchNorm2d(features int64, opts ...Option) *BatchNorm {
	return newBatchNorm(features, 2, opts)
}

// NewBatchNorm3d normalises [N, C, D, H, W]. Options as [NewBatchNorm1d].
func NewBatchNorm3d(features int64, opts ...Option) *BatchNorm {
	return newBatchNorm(features, 3, opts)
}

// NewInstanceNorm1d normalises each channel of each of [N, C, L] by itself. Options: [Eps], [Momentum], [Affine], [TrackRunningStats].
func NewInstanceNorm1d(features int64, opts ...Option) *BatchNorm {
	return newInstanceNorm(features, 1, opts)
}

// NewInstanceNorm2d normalises each channel of each of [N, C, H, W] by itself. Options as [NewInstanceNorm1d].
func NewInstanceNorm2d(features int64, opts ...Option) *BatchNorm {
	return newInstanceNorm(features, 2, opts)
}

// NewInstanceNorm3d normalises each channel of each of [N, C, D, H, W] by itself. Options as [NewInstanceNorm1d].
func NewInstanceNorm3d(features int64, opts ...Option) *BatchNorm {
	return newInstanceNorm(features, 3, opts)
}

func newBatchNorm(n int64, dims int, opts []Option) *BatchNorm {
	m := &BatchNorm{layer: layer{class: fmt.Sprintf("batchnorm.BatchNorm%dd", dims)}, dims: dims}
	o := m.collect(options{eps: 1e-5, momentum: 0.1}, opts, "Eps", "Momentum", "NoAffine", "NoRunningStats")
	m.fill(n, o, !o.noTrack)
	return m
}

func newInstanceNorm(n int64, dims int, opts []Option) *BatchNorm {
	m := &BatchNorm{layer: layer{class: fmt.Sprintf("instancenorm.InstanceNorm%dd", dims)}, dims: dims, instance: true}
	o := m.collect(options{eps: 1e-5, momentum: 0.1, noAffine: true}, opts, "Eps", "Momentum", "Affine", "TrackRunningStats")
	m.fill(n, o, o.track)
	return m
}

func (m *BatchNorm) fill(n int64, o options, track bool) {
	m.eps, m.momentum = o.eps, o.momentum
	if !o.noAffine {
		m.Weight, m.Bias = weight(1, n), weight(0, n)
	}
	if track {
		m.RunningMean, m.RunningVar = &tracer.Buffer{T: constant(0, n), Persistent: true}, &tracer.Buffer{T: constant(1, n), Persistent: true}
		m.NumBatchesTracked = &tracer.Buffer{T: tensor.New(tensor.Int64), Persistent: true}
	}
}

func (m *BatchNorm) train(on bool) { m.Training = on }

// Forward implements [tracer.Module].
func (m *BatchNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	m.check()
	own := m.Training || m.RunningMean == nil // the input's own statistics
	if m.instance {
		h, single := x[0], x[0].Dim() == m.dims+1
		if single {
			h = h.Op("unsqueeze", 0)
		}
		h = h.Op("instance_norm", m.Weight, m.Bias, m.RunningMean, m.RunningVar, own, m.momentum, m.eps, true)
		if single {
			h = h.Op("squeeze.dim", 0)
		}
		return one(h)
	}
	if m.Training && m.NumBatchesTracked != nil {
		x[0].Add(m.NumBatchesTracked, 1)
	}
	return one(x[0].Op("batch_norm", m.Weight, m.Bias, m.RunningMean, m.RunningVar, own, m.momentum, m.eps, true))
}

// LayerNorm normalises the last dimensions, which have the sizes Shape.
type LayerNorm struct {
	layer
	Weight *tracer.Parameter
	Bias   *tracer.Parameter
	shape  []int64
	eps    float64
}

// NewLayerNorm makes a layer over one dimension; [NewLayerNormOf] has more. Options: [Eps], [NoAffine], [NoBias].
func NewLayerNorm(features int64, opts ...Option) *LayerNorm {
	return NewLayerNormOf([]int64{features}, opts...)
}

// NewLayerNormOf makes a layer over the last dimensions.
func NewLayerNormOf(shape []int64, opts ...Option) *LayerNorm {
	l := &LayerNorm{layer: layer{class: "normalization.LayerNorm"}, shape: shape}
	o := l.collect(options{eps: 1e-5}, opts, "Eps", "NoAffine", "NoBias")
	l.eps = o.eps
	if !o.noAffine {
		l.Weight = weight(1, shape...)
		if !o.noBias {
			l.Bias = weight(0, shape...)
		}
	}
	return l
}

// Forward implements [tracer.Module].
func (l *LayerNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	return one(x[0].Op("layer_norm", l.shape, l.Weight, l.Bias, l.eps))
}

// RMSNorm divides by the root of the mean square over the last dimensions.
type RMSNorm struct {
	layer
	Weight *tracer.Parameter
	shape  []int64
	eps    any // nil is the dtype's
}

// NewRMSNorm makes a layer. Options: [Eps] (by default the dtype's smallest step from 1), [NoAffine].
func NewRMSNorm(features int64, opts ...Option) *RMSNorm {
	l := &RMSNorm{layer: layer{class: "normalization.RMSNorm"}, shape: []int64{features}}
	o := l.collect(options{}, opts, "Eps", "NoAffine")
	if o.eps != 0 {
		l.eps = o.eps
	}
	if !o.noAffine {
		l.Weight = weight(1, features)
	}
	return l
}

// Forward implements [tracer.Module].
func (l *RMSNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	return one(x[0].Op("rms_norm", l.shape, l.Weight, l.eps))
}

// GroupNorm normalises groups of channels: x is [N, C, ...].
type GroupNorm struct {
	layer
	Weight *tracer.Parameter
	Bias   *tracer.Parameter
	groups int64
	eps    float64
}

// NewGroupNorm makes a layer. Options: [Eps], [NoAffine].
func NewGroupNorm(groups, channels int64, opts ...Option) *GroupNorm {
	l := &GroupNorm{layer: layer{class: "normalization.GroupNorm"}, groups: groups}
	o := l.collect(options{eps: 1e-5}, opts, "Eps", "NoAffine")
	l.eps = o.eps
	if groups <= 0 || channels%groups != 0 {
		l.refuse("num_channels must be divisible by num_groups")
	} else if !o.noAffine {
		l.Weight, l.Bias = weight(1, channels), weight(0, channels)
	}
	return l
}

// Forward implements [tracer.Module].
func (l *GroupNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	return one(x[0].Op("group_norm", l.groups, l.Weight, l.Bias, l.eps, true))
}

// LocalResponseNorm divides by what Size neighbouring channels have.
type LocalResponseNorm struct {
	layer
	Size           int64
	Alpha, Beta, K float64
}

// NewLocalResponseNorm makes a layer with PyTorch's alpha, beta and k.
func NewLocalResponseNorm(size int64) *LocalResponseNorm {
	return &LocalResponseNorm{layer: layer{class: "normalization.LocalResponseNorm"}, Size: size, Alpha: 1e-4, Beta: 0.75, K: 1}
}

// Forward implements [tracer.Module].
func (l *LocalResponseNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := x[0]
	square := h.Op("mul.Tensor", h).Op("unsqueeze", 1)
	if h.Dim() == 3 {
		square = square.Op("pad", []int64{0, 0, l.Size / 2, (l.Size - 1) / 2})
		square = square.Op("avg_pool2d", []int64{l.Size, 1}, []int64{1, 1}).Op("squeeze.dim", 1)
	} else {
		wide := []any{h.Size(0), 1, h.Size(1), h.Size(2), -1}
		square = square.Op("view", wide).Op("pad", []int64{0, 0, 0, 0, l.Size / 2, (l.Size - 1) / 2})
		square = square.Op("avg_pool3d", []int64{l.Size, 1, 1}, []int64{1, 1, 1}).Op("squeeze.dim", 1)
		var sizes []any
		for _, n := range h.Sizes() {
			sizes = append(sizes, n)
		}
		square = square.Op("view", sizes)
	}
	return one(h.Op("div.Tensor", square.Op("mul.Tensor", l.Alpha).Op("add.Tensor", l.K).Op("pow.Tensor_Scalar", l.Beta)))
}
