package nn

import (
	"fmt"
	"reflect"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// TransformerEncoderLayer is self-attention and a feed-forward network, each with a residual and a layer norm. Inputs are src, then
// src_mask and src_key_padding_mask as in [MultiheadAttention] (its attn_mask and key_padding_mask); nil leaves one out.
type TransformerEncoderLayer struct {
	layer
	SelfAttn *MultiheadAttention `pt2:"self_attn"`
	Linear1  *Linear             `pt2:"linear1"`
	Dropout  *Dropout            `pt2:"dropout"`
	Linear2  *Linear             `pt2:"linear2"`
	Norm1    *LayerNorm          `pt2:"norm1"`
	Norm2    *LayerNorm          `pt2:"norm2"`
	Dropout1 *Dropout            `pt2:"dropout1"`
	Dropout2 *Dropout            `pt2:"dropout2"`

	activation string
	normFirst  bool
}

// transformerOptions are what transformer layers take.
var transformerOptions = []string{"FeedForward", "DropoutP", "ActivationName", "Eps", "BatchFirst", "NormFirst", "NoBias"}

// NewTransformerEncoderLayer makes a layer. Options: [FeedForward], [DropoutP] (0.1 by default), [ActivationName], [Eps], [BatchFirst],
// [NormFirst], [NoBias].
func NewTransformerEncoderLayer(g *aten.Generator, features, heads int64, opts ...Option) *TransformerEncoderLayer {
	l := &TransformerEncoderLayer{layer: layer{class: "transformer.TransformerEncoderLayer"}}
	o := l.transformer(opts)
	l.activation, l.normFirst = o.activation, o.normFirst
	l.SelfAttn = NewMultiheadAttention(g, features, heads, attentionOptions(o)...)
	l.Linear1 = NewLinear(g, features, o.feedForward, biasOption(o)...)
	l.Linear2 = NewLinear(g, o.feedForward, features, biasOption(o)...)
	l.Norm1, l.Norm2 = normOf(features, o), normOf(features, o)
	l.Dropout, l.Dropout1, l.Dropout2 = NewDropout(o.dropout), NewDropout(o.dropout), NewDropout(o.dropout)
	return l
}

func (l *layer) transformer(opts []Option) options {
	o := l.collect(options{feedForward: 2048, dropout: 0.1, activation: "relu", eps: 1e-5}, opts, transformerOptions...)
	if o.activation != "relu" && o.activation != "gelu" {
		l.refuse("activation should be relu/gelu, not " + o.activation)
	}
	return o
}

func attentionOptions(o options) []Option {
	opts := []Option{DropoutP(o.dropout)}
	if o.batchFirst {
		opts = append(opts, BatchFirst())
	}
	return append(opts, biasOption(o)...)
}

func biasOption(o options) []Option {
	if o.noBias {
		return []Option{NoBias()}
	}
	return nil
}

func normOf(features int64, o options) *LayerNorm {
	return NewLayerNorm(features, append(biasOption(o), Eps(o.eps))...)
}

// Forward implements [tracer.Module].
func (l *TransformerEncoderLayer) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	src, mask, padding := x[0], optional(x, 1), optional(x, 2)
	attend := func(h *tracer.Tensor) *tracer.Tensor {
		return tracer.Call1(l.Dropout1, tracer.Call1(l.SelfAttn, h, h, h, padding, mask))
	}
	feed := func(h *tracer.Tensor) *tracer.Tensor {
		h = tracer.Call1(l.Dropout, tracer.Call1(l.Linear1, h).Op(l.activation))
		return tracer.Call1(l.Dropout2, tracer.Call1(l.Linear2, h))
	}
	if l.normFirst {
		h := src.Op("add.Tensor", attend(tracer.Call1(l.Norm1, src)))
		return one(h.Op("add.Tensor", feed(tracer.Call1(l.Norm2, h))))
	}
	h := tracer.Call1(l.Norm1, src.Op("add.Tensor", attend(src)))
	return one(tracer.Call1(l.Norm2, h.Op("add.Tensor", feed(h))))
}

// optional is input i, nil if it is left out.
func optional(x []*tracer.Tensor, i int) *tracer.Tensor {
	if i < len(x) {
		return x[i]
	}
	return nil
}

// TransformerDecoderLayer is self-attention, attention to an encoder's result, and a feed-forward network. Inputs are tgt and memory, then
// tgt_mask, memory_mask, tgt_key_padding_mask and memory_key_padding_mask; nil leaves one out.
type TransformerDecoderLayer struct {
	layer
	SelfAttn      *MultiheadAttention `pt2:"self_attn"`
	MultiheadAttn *MultiheadAttention `pt2:"multihead_attn"`
	Linear1       *Linear             `pt2:"linear1"`
	Dropout       *Dropout            `pt2:"dropout"`
	Linear2       *Linear             `pt2:"linear2"`
	Norm1         *LayerNorm          `pt2:"norm1"`
	Norm2         *LayerNorm          `pt2:"norm2"`
	Norm3         *LayerNorm          `pt2:"norm3"`
	Dropout1      *Dropout            `pt2:"dropout1"`
	Dropout2      *Dropout            `pt2:"dropout2"`
	Dropout3      *Dropout            `pt2:"dropout3"`

	activation string
	normFirst  bool
}

// NewTransformerDecoderLayer makes a layer. Options as [NewTransformerEncoderLayer].
func NewTransformerDecoderLayer(g *aten.Generator, features, heads int64, opts ...Option) *TransformerDecoderLayer {
	l := &TransformerDecoderLayer{layer: layer{class: "transformer.TransformerDecoderLayer"}}
	o := l.transformer(opts)
	l.activation, l.normFirst = o.activation, o.normFirst
	l.SelfAttn = NewMultiheadAttention(g, features, heads, attentionOptions(o)...)
	l.MultiheadAttn = NewMultiheadAttention(g, features, heads, attentionOptions(o)...)
	l.Linear1 = NewLinear(g, features, o.feedForward, biasOption(o)...)
	l.Linear2 = NewLinear(g, o.feedForward, features, biasOption(o)...)
	l.Norm1, l.Norm2, l.Norm3 = normOf(features, o), normOf(features, o), normOf(features, o)
	l.Dropout, l.Dropout1, l.Dropout2, l.Dropout3 = NewDropout(o.dropout), NewDropout(o.dropout), NewDropout(o.dropout), NewDropout(o.dropout)
	return l
}

// Forward implements [tracer.Module].
func (l *TransformerDecoderLayer) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	h, memory := x[0], x[1]
	self := func(h *tracer.Tensor) *tracer.Tensor {
		return tracer.Call1(l.Dropout1, tracer.Call1(l.SelfAttn, h, h, h, optional(x, 4), optional(x, 2)))
	}
	cross := func(h *tracer.Tensor) *tracer.Tensor {
		return tracer.Call1(l.Dropout2, tracer.Call1(l.MultiheadAttn, h, memory, memory, optional(x, 5), optional(x, 3)))
	}
	feed := func(h *tracer.Tensor) *tracer.Tensor {
		h = tracer.Call1(l.Dropout, tracer.Call1(l.Linear1, h).Op(l.activation))
		return tracer.Call1(l.Dropout3, tracer.Call1(l.Linear2, h))
	}
	norms := []*LayerNorm{l.Norm1, l.Norm2, l.Norm3}
	for i, f := range []func(*tracer.Tensor) *tracer.Tensor{self, cross, feed} {
		if l.normFirst {
			h = h.Op("add.Tensor", f(tracer.Call1(norms[i], h)))
		} else {
			h = tracer.Call1(norms[i], h.Op("add.Tensor", f(h)))
		}
	}
	return one(h)
}

// TransformerStack is an encoder or a decoder: layers one after the other, and a norm at the end if Norm is not nil.
type TransformerStack struct {
	layer
	Layers *ModuleList `pt2:"layers"`
	Norm   *LayerNorm  `pt2:"norm"`
}

// NewTransformerEncoder makes n copies of a layer, which begin with the same weights, as in PyTorch. norm may be nil. Inputs are those of
// the layer.
func NewTransformerEncoder(l *TransformerEncoderLayer, n int, norm *LayerNorm) *TransformerStack {
	return stack("TransformerEncoder", l, n, norm)
}

// NewTransformerDecoder makes n copies of a layer, which begin with the same weights, as in PyTorch. norm may be nil. Inputs are those of
// the layer.
func NewTransformerDecoder(l *TransformerDecoderLayer, n int, norm *LayerNorm) *TransformerStack {
	return stack("TransformerDecoder", l, n, norm)
}

func stack[M tracer.Module](class string, l M, n int, norm *LayerNorm) *TransformerStack {
	var copies []tracer.Module
	for range n {
		copies = append(copies, clone(l))
	}
	return &TransformerStack{layer: layer{class: "transformer." + class}, Norm: norm, Layers: NewModuleList(copies...)}
}

// Forward implements [tracer.Module].
func (s *TransformerStack) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	s.check()
	x = append([]*tracer.Tensor(nil), x...)
	for _, m := range s.Layers.Modules() {
		x[0] = tracer.Call1(m, x...)
	}
	if s.Norm != nil {
		x[0] = tracer.Call1(s.Norm, x[0])
	}
	return x[:1]
}

// clone copies a layer with its parameters.
func clone[M tracer.Module](m M) M {
	return cloned(reflect.ValueOf(m)).Interface().(M)
}

func cloned(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return v
	}
	switch p := v.Interface().(type) {
	case *tracer.Parameter:
		return reflect.ValueOf(&tracer.Parameter{T: copyOf(p.T), RequiresGrad: p.RequiresGrad})
	case *tracer.Buffer:
		return reflect.ValueOf(&tracer.Buffer{T: copyOf(p.T), Persistent: p.Persistent})
	}
	if v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("nn: a %s cannot be copied", v.Type()))
	}
	out := reflect.New(v.Type().Elem())
	out.Elem().Set(v.Elem())
	for i := range v.Elem().NumField() {
		if f := v.Type().Elem().Field(i); f.IsExported() {
			out.Elem().Field(i).Set(cloned(v.Elem().Field(i)))
		}
	}
	return out
}

func copyOf(t *tensor.Tensor) *tensor.Tensor {
	c := tensor.New(t.DType(), t.Sizes()...)
	copy(tensor.Data[float32](c), tensor.Contiguous[float32](t))
	return c
}
