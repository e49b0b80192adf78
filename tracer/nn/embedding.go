package nn

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// Embedding looks up rows of Weight, [entries, features], by an integer tensor of any sizes.
type Embedding struct {
	layer
	Weight     *tracer.Parameter
	paddingIdx int64
}

// NewEmbedding makes a table. Options: [PaddingIdx].
func NewEmbedding(g *aten.Generator, entries, features int64, opts ...Option) *Embedding {
	e := &Embedding{layer: layer{class: "sparse.Embedding"}, paddingIdx: -1}
	o := e.collect(options{}, opts, "PaddingIdx")
	e.Weight = normal(g, 1, entries, features)
	e.paddingIdx = e.padding(o, e.Weight.T, entries, features)
	return e
}

// padding clears the row that stays zero, and gives its number; -1 is none.
func (l *layer) padding(o options, w *tensor.Tensor, entries, features int64) int64 {
	if o.paddingIdx == nil {
		return -1
	}
	i := *o.paddingIdx
	if i < -entries || i >= entries {
		l.refuse("Padding_idx must be within num_embeddings")
		return -1
	}
	i = (i + entries) % entries
	clear(tensor.Data[float32](w)[i*features : (i+1)*features])
	return i
}

// Forward implements [tracer.Module].
func (e *Embedding) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	e.check()
	if e.paddingIdx < 0 {
		return one(x[0].On("embedding", e.Weight, x[0]))
	}
	return one(x[0].On("embedding", e.Weight, x[0], e.paddingIdx))
}

// EmbeddingBag reduces rows of Weight, [entries, features]: inputs are indices [bags, n], or indices [n] and the offsets [bags] where bags
// begin, and weights of the indices if the mode is "sum".
type EmbeddingBag struct {
	layer
	Weight      *tracer.Parameter
	mode        int64
	includeLast bool
	paddingIdx  int64
}

// NewEmbeddingBag makes a table. Options: [Mode] ("mean" by default), [IncludeLastOffset], [PaddingIdx].
func NewEmbeddingBag(g *aten.Generator, entries, features int64, opts ...Option) *EmbeddingBag {
	e := &EmbeddingBag{layer: layer{class: "sparse.EmbeddingBag"}}
	o := e.collect(options{mode: "mean"}, opts, "Mode", "IncludeLastOffset", "PaddingIdx")
	modes := map[string]int64{"sum": 0, "mean": 1, "max": 2}
	mode, ok := modes[o.mode]
	if !ok {
		e.refuse(fmt.Sprintf("mode has to be one of sum, mean or max, not %q", o.mode))
	}
	e.mode, e.includeLast = mode, o.includeLast
	e.Weight = normal(g, 1, entries, features)
	e.paddingIdx = e.padding(o, e.Weight.T, entries, features)
	return e
}

// Forward implements [tracer.Module].
func (e *EmbeddingBag) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	e.check()
	indices, rest := x[0], x[1:]
	var offsets, weights *tracer.Tensor
	if indices.Dim() == 2 {
		// Bags of equal length: the offsets are multiples of it.
		offsets = indices.On("arange.start_step", 0, indices.Size(0).Mul(indices.Size(1)), indices.Size(1), aten.Kw("dtype", indices.DType()), aten.Kw("device", "cpu"))
		indices = indices.Op("reshape", []int64{-1})
		if len(rest) > 0 && rest[len(rest)-1] != nil {
			weights = rest[len(rest)-1].Op("reshape", []int64{-1})
		}
	} else {
		if len(rest) == 0 {
			panic(&tracer.UserError{Kind: tracer.InvalidInput, Msg: "EmbeddingBag: offsets has to be a 1D Tensor but got None"})
		}
		offsets = rest[0]
		if len(rest) > 1 {
			weights = rest[1]
		}
	}
	args := []any{e.Weight, indices, offsets, false, e.mode, false, weights, e.includeLast}
	if e.paddingIdx >= 0 {
		return one(x[0].On("embedding_bag.padding_idx", append(args, e.paddingIdx)...))
	}
	return one(x[0].On("embedding_bag.padding_idx", append(args, nil)...))
}
