// Package nn has the layers of torch.nn for models written in Go: initialised as PyTorch initialises them (from the same stream of
// random numbers), with the names that PyTorch's state dicts have.
//
//	g := nn.Seed(0)
//	net := nn.NewSequential(
//		nn.NewConv2d(g, 3, 16, 3, nn.Stride(2), nn.Padding(1), nn.NoBias()),
//		nn.NewBatchNorm2d(16),
//		nn.ReLU(),
//		nn.NewAdaptiveAvgPool2d(1),
//		nn.NewFlatten(),
//		nn.NewLinear(g, 16, 10),
//	)
//
// Constructors take what PyTorch's take without a default, in PyTorch's order, then options. What they refuse (channels that do not divide
// by the groups, an option the layer does not have) is reported by the first call of the layer, so by [tracer.Run] or [tracer.Export].
//
// Layers start in evaluation mode, since exported programs serve; [Train] switches them.
package nn

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tracer"
)

// Seed starts the random numbers that layers are initialised from, as torch.manual_seed does.
func Seed(seed uint64) *aten.Generator { return aten.NewGenerator(seed) }

// layer is what all layers have: their name in PyTorch, and what was wrong with their arguments.
type layer struct {
	class string
	err   error
}

// TypeName is the layer's type as PyTorch's metadata has it.
func (l *layer) TypeName() string { return "torch.nn.modules." + l.class }

// check refuses the call of a layer that was made with wrong arguments.
func (l *layer) check() {
	if l.err != nil {
		panic(l.err)
	}
}

// refuse keeps the first thing that is wrong with the arguments.
func (l *layer) refuse(msg string) {
	if l.err == nil {
		l.err = &tracer.UserError{Kind: tracer.InvalidInput, Msg: l.class[lastDot(l.class)+1:] + ": " + msg}
	}
}

func lastDot(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '.' {
			return i
		}
	}
	return -1
}

func one(t *tracer.Tensor) []*tracer.Tensor { return []*tracer.Tensor{t} }

// trainable is a layer that computes something else in training.
type trainable interface{ train(on bool) }

// Train switches a model and all its sub-modules to training or to evaluation, as Module.train and Module.eval do.
func Train(m any, on bool) error {
	return tracer.EachModule(m, func(_ string, m any) {
		if t, ok := m.(trainable); ok {
			t.train(on)
		}
	})
}
