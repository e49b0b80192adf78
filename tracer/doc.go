// Package tracer makes exported programs of models written in Go.
//
// A model is a struct with sub-modules, parameters and buffers in exported fields and a Forward method over [Tensor] values (package
// tracer/nn has the usual layers). The same code runs eagerly by [Run] and becomes a program by [Export]:
//
//	type Net struct {
//		L1, L2 *nn.Linear
//	}
//
//	func (n *Net) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
//		h := tracer.Call1(n.L1, x[0]).Op("relu")
//		return tracer.Call(n.L2, h)
//	}
//
//	func (n *Net) InputNames() []string { return []string{"x"} }
//
//	p, err := tracer.Export(net, []*tensor.Tensor{x}, tracer.WithDynamic("x", 0, batch))
//	err = loader.SaveFile("net.pt2", p, loader.SaveOptions{})
//
// Sizes named by a [Dim] or left to [Auto] stay symbols. Code may look at them: what the examples answer holds for the sizes that give the
// same answer, and the program says so in its ranges and guards. A [Dim] that promises more is refused, with fixes.
//
// Code may not look at elements: an if or a loop that depends on them is written with [Cond], [WhileLoop], [Map] and [Scan], whose
// functions become subgraphs of the program. Operators of one's own come by [WithOps].
package tracer
