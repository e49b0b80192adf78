package plan

import (
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
)

// Pass is one step from the recorded instructions to the plan.
type Pass struct {
	Name string
	// Doc says what the pass does.
	Doc string
	// After lists passes that must have run before, each with the reason.
	After map[string]string
	run   func(g *graph)
	// required passes cannot be left out: what earlier ones made does not run without them.
	required bool
}

// Passes lists the passes in the order in which they run. Each can be left out by its name, see [Options].
func Passes() []Pass { return passes }

var passes []Pass

// The table refers to passes that look themselves up in it, hence init.
func init() {
	passes = []Pass{
		{Name: "dead-code", Doc: "drops instructions whose results nobody uses", run: (*graph).dropDead},
		{Name: "quantized", Doc: "convolutions and products between dequantized numbers and a quantization compute on the integers", run: (*graph).lowerQuantized},
		{Name: "fold", Doc: "computes what is left of constants that were held back, dequantized weights", run: (*graph).foldLate, required: true,
			After: map[string]string{"quantized": "it wants the integers"}},
		{Name: "common", Doc: "what several instructions compute alike is computed once", run: (*graph).shareCommon,
			After: map[string]string{"fold": "constants are told apart by their memory"}},
		{Name: "activations", Doc: "formulas of silu, hardswish, gelu and the like become one operator", run: (*graph).recognizeActivations},
		{Name: "rms-norm", Doc: "x * rsqrt(mean(x^2) + eps) becomes one operator", run: (*graph).recognizeRMSNorm},
		{Name: "attention", Doc: "softmax(Q K^T * scale + mask) V written out becomes one operator", run: (*graph).recognizeAttention},
		{Name: "shared-heads", Doc: "attention reads keys and values that several heads share without repeating them", run: (*graph).shareHeads},
		{Name: "read-through", Doc: "attention and products read strided values themselves instead of copies", run: (*graph).readThrough,
			After: map[string]string{"attention": "its operands are copies often"}},
		{Name: "write-through", Doc: "attention writes its result in the order that a copy would give it", run: (*graph).writeThrough,
			After: map[string]string{"attention": "its result is transposed often"}},
		{Name: "dead-formulas", Doc: "drops what the recognized operators no longer need", run: (*graph).dropDead,
			After: map[string]string{"activations": "it leaves the parts of formulas", "rms-norm": "it leaves the parts of formulas",
				"shared-heads": "it leaves the repeated keys and values", "read-through": "it leaves the copies"}},
		{Name: "recurrent", Doc: "constant weights of recurrent layers are packed", run: (*graph).packRecurrent},
		{Name: "convolution", Doc: "convolutions with constant weights become the planner's own, with channels last", run: (*graph).lowerConvolutions},
		{Name: "pooling", Doc: "poolings with channels last and means over rows become the planner's own", run: (*graph).lowerPooling},
		{Name: "extremes", Doc: "max and min along a dimension do not say where, if nobody asks", run: (*graph).dropPlaces},
		{Name: "norms", Doc: "layer norms and RMS norms of contiguous rows become the planner's own", run: (*graph).lowerNorms,
			After: map[string]string{"rms-norm": "it finds RMS norms that are written out"}},
		{Name: "linear", Doc: "products with constant matrices become the planner's own", run: (*graph).lowerLinear},
		{Name: "batch-norm", Doc: "batch norms go into the weights before them, or become a multiply-add by channel", run: (*graph).foldBatchNorm,
			After: map[string]string{"convolution": "its products take the factors", "linear": "its products take the factors"}},
		{Name: "epilogue", Doc: "bias, residual and activation go into the product before them", run: (*graph).fuseEpilogues,
			After: map[string]string{"batch-norm": "a norm is linear, so it has to come before an activation"}},
		{Name: "crosswise", Doc: "operands that lie crosswise to the result of an element-by-element instruction are transposed first", run: (*graph).transposeOperands,
			After: map[string]string{"epilogue": "a product may take the instruction"}},
		{Name: "pointwise", Doc: "element-by-element instructions become programs that run block by block in the cache", run: (*graph).fusePointwise,
			After: map[string]string{"epilogue": "what a product can do at its end costs no pass over memory"}},
		{Name: "conv-pair", Doc: "a convolution of single positions and a depthwise one after it run together, a band of rows at a time", run: (*graph).pairConvolutions,
			After: map[string]string{"epilogue": "a residual or an activation may belong between the two"}},
		{Name: "concat", Doc: "convolutions read concatenated channels from their parts", run: (*graph).readConcatenations,
			After: map[string]string{"epilogue": "it knows convolutions of one tensor only"}},
		{Name: "pack", Doc: "constant weights are put in the order in which kernels read them", run: (*graph).packWeights,
			After: map[string]string{"epilogue": "factors of columns are multiplied into the weights"}, required: true},
	}
}

// inPlacePass is the name of what [Plan.inPlace] does; it is no step over instructions, but can be left out as one.
const inPlacePass = "in-place"

// HasPass reports whether there is a pass of that name.
func HasPass(name string) bool {
	return name == inPlacePass || slices.ContainsFunc(passes, func(p Pass) bool { return p.Name == name && !p.required })
}

// optimize runs the passes.
func (g *graph) optimize() error {
	for _, o := range g.outputs {
		if o != nil && o.T == nil && bufferOf(o).Kind == Temp {
			bufferOf(o).Kind = Output
		}
	}
	g.analyze()
	for _, p := range passes {
		if !g.enabled(p.Name) && !p.required {
			continue
		}
		p.run(g)
		g.compact()
		if err := g.check(); err != nil {
			return fmt.Errorf("plan: after pass %s: %w", p.Name, err)
		}
	}
	return nil
}

// check holds the instructions against what every pass must leave: each value has memory, and what is read has been written.
func (g *graph) check() error {
	written := map[*Buffer]bool{}
	for i, in := range g.instrs {
		var err error
		eachValue(in.Args, func(v *aten.Value) {
			if v.T != nil {
				return
			}
			b := bufferOf(v)
			switch {
			case b == nil:
				err = fmt.Errorf("instruction %d (%s) has an argument without memory", i, in.Op.Name())
			case (b.Kind == Temp || b.Kind == Output) && !written[b] && b.Bytes > 0 && !writes(in, b):
				err = fmt.Errorf("instruction %d (%s) reads a buffer that nothing has written", i, in.Op.Name())
			}
		})
		if err != nil {
			return err
		}
		for _, o := range in.Outs {
			if o != nil {
				written[bufferOf(o)] = true
			}
		}
	}
	for _, o := range g.outputs {
		if o != nil && o.T == nil && bufferOf(o).Kind == Output && bufferOf(o).Bytes > 0 && !written[bufferOf(o)] {
			return fmt.Errorf("an output is never written")
		}
	}
	return nil
}

func writes(in *Instr, b *Buffer) bool {
	for _, o := range in.Outs {
		if o != nil && bufferOf(o) == b {
			return true
		}
	}
	return false
}

// dropDead removes instructions whose results nobody uses.
func (g *graph) dropDead() {
	needed := map[*Buffer]bool{}
	for _, b := range g.buffers {
		if b.given || b.Kind == Input || b.Kind == State {
			needed[b] = true
		}
	}
	for i := len(g.instrs) - 1; i >= 0; i-- {
		in := g.instrs[i]
		use := len(in.Outs) == 0
		for _, o := range in.Outs {
			use = use || (o != nil && needed[bufferOf(o)])
		}
		if !use {
			g.remove(i)
			continue
		}
		eachValue(in.Args, func(v *aten.Value) {
			if v.T == nil {
				needed[bufferOf(v)] = true
			}
		})
	}
}
