package aten

import (
	"github.com/pt2go/pt2/tensor"
)

// Fn1 computes an operator of one operand in each kind it is defined for; nil fields are refused as "not implemented".
type Fn1 struct {
	B    func(d, x []uint8)
	I64  func(d, x []int64)
	U64  func(d, x []uint64)
	F32  func(d, x []float32)
	F64  func(d, x []float64)
	C64  func(d, x []complex64)
	C128 func(d, x []complex128)
}

// Fn2 is [Fn1] for two operands.
type Fn2 struct {
	B    func(d, x, y []uint8)
	I64  func(d, x, y []int64)
	U64  func(d, x, y []uint64)
	F32  func(d, x, y []float32)
	F64  func(d, x, y []float64)
	C64  func(d, x, y []complex64)
	C128 func(d, x, y []complex128)
}

// Fn3 is [Fn1] for three operands.
type Fn3 struct {
	B    func(d, x, y, z []uint8)
	I64  func(d, x, y, z []int64)
	U64  func(d, x, y, z []uint64)
	F32  func(d, x, y, z []float32)
	F64  func(d, x, y, z []float64)
	C64  func(d, x, y, z []complex64)
	C128 func(d, x, y, z []complex128)
}

// Each1 lifts a function of one element to blocks.
func Each1[T any](f func(x T) T) func(d, x []T) {
	return func(d, x []T) {
		x = x[:len(d)]
		for i := range d {
			d[i] = f(x[i])
		}
	}
}

// Each2 lifts a function of two elements to blocks.
func Each2[T any](f func(x, y T) T) func(d, x, y []T) {
	return func(d, x, y []T) {
		x, y = x[:len(d)], y[:len(d)]
		for i := range d {
			d[i] = f(x[i], y[i])
		}
	}
}

// Each3 lifts a function of three elements to blocks.
func Each3[T any](f func(x, y, z T) T) func(d, x, y, z []T) {
	return func(d, x, y, z []T) {
		x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
		for i := range d {
			d[i] = f(x[i], y[i], z[i])
		}
	}
}

func lift1[T Compute](f func(d, x []T)) func(outs, ins []Block) {
	if f == nil {
		return nil
	}
	return func(outs, ins []Block) { f(As[T](outs[0]), As[T](ins[0])) }
}

func lift2[T Compute](f func(d, x, y []T)) func(outs, ins []Block) {
	if f == nil {
		return nil
	}
	return func(outs, ins []Block) { f(As[T](outs[0]), As[T](ins[0]), As[T](ins[1])) }
}

func lift3[T Compute](f func(d, x, y, z []T)) func(outs, ins []Block) {
	if f == nil {
		return nil
	}
	return func(outs, ins []Block) { f(As[T](outs[0]), As[T](ins[0]), As[T](ins[1]), As[T](ins[2])) }
}

func (f *Fn1) body(k Kind) func(outs, ins []Block) {
	return [...]func(outs, ins []Block){lift1(f.B), lift1(f.I64), lift1(f.U64), lift1(f.F32), lift1(f.F64), lift1(f.C64), lift1(f.C128)}[k]
}

func (f *Fn2) body(k Kind) func(outs, ins []Block) {
	return [...]func(outs, ins []Block){lift2(f.B), lift2(f.I64), lift2(f.U64), lift2(f.F32), lift2(f.F64), lift2(f.C64), lift2(f.C128)}[k]
}

func (f *Fn3) body(k Kind) func(outs, ins []Block) {
	return [...]func(outs, ins []Block){lift3(f.B), lift3(f.I64), lift3(f.U64), lift3(f.F32), lift3(f.F64), lift3(f.C64), lift3(f.C128)}[k]
}

// Map1 runs f over x into Out[0], computing in the kind of the output's dtype (to which x is cast first).
func (k *Kernel) Map1(f Fn1, x *tensor.Tensor) {
	dt := k.Out[0].DType()
	k.loop(f.body(KindOf(dt)), dt, dt, x)
}

// Map2 is [Kernel.Map1] for two operands.
func (k *Kernel) Map2(f Fn2, x, y *tensor.Tensor) {
	dt := k.Out[0].DType()
	k.loop(f.body(KindOf(dt)), dt, dt, x, y)
}

// map2Wide is [Kernel.Map2] for multiplication and division, in which a 0-d second operand keeps its float32 value beside
// 16-bit floats.
func (k *Kernel) map2Wide(f Fn2, x, y *tensor.Tensor) {
	dt := k.Out[0].DType()
	if y.Dim() == 0 && x.Dim() > 0 && dt.IsReduced() {
		kind := KindOf(dt)
		ins := []Operand{{T: x, Kind: kind, Via: dt}, {T: y, Kind: kind}}
		Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}}, ins, f.body(kind))
		return
	}
	k.Map2(f, x, y)
}

// Map3 is [Kernel.Map1] for three operands.
func (k *Kernel) Map3(f Fn3, x, y, z *tensor.Tensor) {
	dt := k.Out[0].DType()
	k.loop(f.body(KindOf(dt)), dt, dt, x, y, z)
}

// loop runs a block body over the inputs, computing in the kind of dtype dt, into Out[0] of dtype out.
func (k *Kernel) loop(body func(outs, ins []Block), out, dt tensor.DType, ins ...*tensor.Tensor) {
	if body == nil {
		failDType(k.Op, dt)
	}
	kind := KindOf(dt)
	ops := make([]Operand, len(ins))
	for i, t := range ins {
		ops[i] = Operand{T: t, Kind: kind, Via: dt}
	}
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KindOf(out)}}, ops, body)
}

// tensorArgs collects the Tensor arguments that are given.
func tensorArgs(a *Args) []*Value {
	var out []*Value
	for _, x := range a.V {
		if v, ok := x.(*Value); ok && v != nil {
			out = append(out, v)
		}
	}
	return out
}

// shapeSame is the shape function of element-by-element operators that answer in the promoted dtype of their operands.
func shapeSame(a *Args) []Meta {
	vals := tensorArgs(a)
	return []Meta{PointwiseMeta(ResultType(vals...), vals...)}
}

// shapeFloat is [shapeSame] with integers and Bool answered in float32.
func shapeFloat(a *Args) []Meta {
	vals := tensorArgs(a)
	return []Meta{PointwiseMeta(FloatType(ResultType(vals...)), vals...)}
}

// shapeBool is the shape function of comparisons and predicates.
func shapeBool(a *Args) []Meta {
	return []Meta{PointwiseMeta(tensor.Bool, tensorArgs(a)...)}
}

// map1 is the kernel of a one-operand operator over argument 0.
func map1(f Fn1) func(k *Kernel) { return func(k *Kernel) { k.Map1(f, k.T(0)) } }

// map2 is the kernel of a two-operand operator over arguments 0 and 1.
func map2(f Fn2) func(k *Kernel) { return func(k *Kernel) { k.Map2(f, k.T(0), k.T(1)) } }

// map2Wide is map2 by [Kernel.map2Wide].
func map2Wide(f Fn2) func(k *Kernel) { return func(k *Kernel) { k.map2Wide(f, k.T(0), k.T(1)) } }

// inFloat makes a decomposition compute 16-bit floats in float32 and round its results once, as the kernels of PyTorch do
// that the decomposition stands for.
func inFloat(f func(b *Build, a *Args) []*Value) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		half := tensor.Invalid
		w := &Args{Op: a.Op, V: append([]any{}, a.V...)}
		for i, x := range a.V {
			if v, _ := x.(*Value); v != nil && v.DType.IsReduced() {
				half = v.DType
				w.V[i] = b.Call("to.dtype", v, tensor.Float32)
			}
		}
		outs := f(b, w)
		if half == tensor.Invalid {
			return outs
		}
		for i, v := range outs {
			if v != nil && v.DType == tensor.Float32 {
				outs[i] = b.Call("to.dtype", v, half)
			}
		}
		return outs
	}
}
