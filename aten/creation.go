package aten

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

const (
	factoryArgs = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
	likeArgs    = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"
)

// creationOps make tensors from numbers. Memory that PyTorch leaves uninitialised is zero here.
var creationOps = []Op{
	{
		Schema: "empty.memory_format(SymInt[] size, " + likeArgs,
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			m := fresh(a, 0, 1, tensor.Float32)
			f := a.MemoryFormat(5)
			Check(f != PreserveFormat, "Unsupported memory format Preserve")
			m.Strides = FormatStrides(f, m.Sizes, nil)
			m.Zero = true
			return []Meta{m}
		},
		CPU: func(*Kernel) {},
	},
	{
		Schema: "empty_strided(SymInt[] size, SymInt[] stride, " + factoryArgs,
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			m := fresh(a, 0, 2, tensor.Float32)
			m.Strides, m.Zero = checkedStrides(m.Sizes, a.Ints(1)), true
			return []Meta{m}
		},
		CPU: func(*Kernel) {},
	},
	{
		Schema: "empty_permuted(SymInt[] size, int[] physical_layout, " + factoryArgs,
		Shape: func(a *Args) []Meta {
			m := fresh(a, 0, 2, tensor.Float32)
			m.Strides, m.Zero = permutedStrides(m.Sizes, a.I64s(1)), true
			return []Meta{m}
		},
		CPU: func(*Kernel) {},
	},
	{
		Schema: "empty_like(Tensor self, " + likeArgs,
		Tags:   SizesOnly,
		Shape: func(a *Args) []Meta {
			m := likeMeta(a, 1)
			m.Zero = true
			return []Meta{m}
		},
		CPU: func(*Kernel) {},
	},
	{
		Schema: "new_empty(Tensor self, SymInt[] size, " + factoryArgs,
		Tags:   SizesOnly,
		Shape: func(a *Args) []Meta {
			m := fresh(a, 1, 2, a.Tensor(0).DType)
			m.Zero = true
			return []Meta{m}
		},
		CPU: func(*Kernel) {},
	},
	{
		Schema: "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, " + factoryArgs,
		Tags:   SizesOnly,
		Shape: func(a *Args) []Meta {
			m := fresh(a, 1, 3, a.Tensor(0).DType)
			m.Strides, m.Zero = checkedStrides(m.Sizes, a.Ints(2)), true
			return []Meta{m}
		},
		CPU: func(*Kernel) {},
	},
	constOp("zeros(SymInt[] size, "+factoryArgs, 0, 0),
	constOp("_efficientzerotensor(SymInt[] size, "+factoryArgs, 0, 0),
	constOp("ones(SymInt[] size, "+factoryArgs, 0, 1),
	constOp("new_zeros(Tensor self, SymInt[] size, "+factoryArgs, 1, 0),
	constOp("new_ones(Tensor self, SymInt[] size, "+factoryArgs, 1, 1),
	constLikeOp("zeros_like(Tensor self, "+likeArgs, 0),
	constLikeOp("ones_like(Tensor self, "+likeArgs, 1),
	{
		Schema: "full(SymInt[] size, Scalar fill_value, " + factoryArgs,
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return []Meta{fresh(a, 0, 2, a.Scalar(1).DType())} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], k.Scalar(1)) },
	},
	{
		Schema: "new_full(Tensor self, SymInt[] size, Scalar fill_value, " + factoryArgs,
		Tags:   SizesOnly,
		Shape:  func(a *Args) []Meta { return []Meta{fresh(a, 1, 3, a.Tensor(0).DType)} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], k.Scalar(2)) },
	},
	{
		Schema: "full_like(Tensor self, Scalar fill_value, " + likeArgs,
		Tags:   Core | SizesOnly,
		Shape:  func(a *Args) []Meta { return []Meta{likeMeta(a, 2)} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], k.Scalar(1)) },
	},
	{
		Schema: "scalar_tensor(Scalar s, " + factoryArgs,
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return []Meta{Contig(a.DType(1, tensor.Float32))} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], k.Scalar(0)) },
	},
	{
		Schema: "fill.Scalar(Tensor self, Scalar value) -> Tensor",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return []Meta{likeDense(a.Tensor(0))} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], k.Scalar(1)) },
	},
	{
		Schema: "fill.Tensor(Tensor self, Tensor value) -> Tensor",
		Shape: func(a *Args) []Meta {
			Check(a.Tensor(1).Dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", a.Tensor(1).Dim())
			return []Meta{likeDense(a.Tensor(0))}
		},
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(1)) },
	},
	{
		Schema: "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
		Decomp: inPlace(nil),
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], k.Scalar(1)) },
	},
	{
		Schema: "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
		Decomp: inPlace(func(a *Args) {
			Check(a.Tensor(1).Dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", a.Tensor(1).Dim())
		}),
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(1)) },
	},
	{
		Schema: "zero(Tensor self) -> Tensor",
		Shape:  func(a *Args) []Meta { return []Meta{likeDense(a.Tensor(0))} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], IntS(0)) },
	},
	{
		Schema: "zero_(Tensor(a!) self) -> Tensor(a!)",
		Decomp: inPlace(nil),
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], IntS(0)) },
	},
	{
		Schema: "arange(Scalar end, " + factoryArgs,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("arange.start_step", 0, a.Scalar(0), 1, Kw("dtype", a.V[1])))
		},
	},
	{
		Schema: "arange.start(Scalar start, Scalar end, " + factoryArgs,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("arange.start_step", a.Scalar(0), a.Scalar(1), 1, Kw("dtype", a.V[2])))
		},
	},
	{
		Schema: "arange.start_step(Scalar start, Scalar end, Scalar step=1, " + factoryArgs,
		Tags:   Core,
		Shape:  shapeArange,
		CPU:    func(k *Kernel) { writeRange(k.Out[0], k.Scalar(0), k.Scalar(2)) },
	},
	{
		Schema: "range.step(Scalar start, Scalar end, Scalar step=1, " + factoryArgs,
		Shape: func(a *Args) []Meta {
			start, end, step := a.Scalar(0).Float64(), a.Scalar(1).Float64(), a.Scalar(2).Float64()
			checkRange(start, end, step)
			return []Meta{Contig(a.DType(3, tensor.Float32), symbolic.N(int64((end-start)/step)+1))}
		},
		CPU: func(k *Kernel) { writeRange(k.Out[0], k.Scalar(0), k.Scalar(2)) },
	},
	{
		Schema: "range(Scalar start, Scalar end, " + factoryArgs,
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("range.step", a.Scalar(0), a.Scalar(1), 1, Kw("dtype", a.V[2])))
		},
	},
	{
		Schema: "linspace(Scalar start, Scalar end, int steps, " + factoryArgs,
		Shape: func(a *Args) []Meta {
			Check(a.I64(2) >= 0, "number of steps must be non-negative")
			def := tensor.Float32
			if a.Scalar(0).Kind == ComplexScalar || a.Scalar(1).Kind == ComplexScalar {
				def = tensor.Complex64
			}
			return []Meta{Contig(a.DType(3, def), a.Int(2))}
		},
		CPU: func(k *Kernel) { writeLinspace(k.Out[0], k.Scalar(0), k.Scalar(1), nil) },
	},
	spaceOverload("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, "+factoryArgs, "linspace", false),
	spaceOverload("linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, "+factoryArgs, "linspace", false),
	spaceOverload("linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, "+factoryArgs, "linspace", false),
	{
		Schema: "logspace(Scalar start, Scalar end, int steps, float base=10., " + factoryArgs,
		Shape: func(a *Args) []Meta {
			Check(a.I64(2) >= 0, "number of steps must be non-negative")
			def := tensor.Float32
			if a.Scalar(0).Kind == ComplexScalar || a.Scalar(1).Kind == ComplexScalar {
				def = tensor.Complex64
			}
			return []Meta{Contig(a.DType(4, def), a.Int(2))}
		},
		CPU: func(k *Kernel) {
			base := k.Float(3)
			writeLinspace(k.Out[0], k.Scalar(0), k.Scalar(1), &base)
		},
	},
	spaceOverload("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., "+factoryArgs, "logspace", true),
	spaceOverload("logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., "+factoryArgs, "logspace", true),
	spaceOverload("logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., "+factoryArgs, "logspace", true),
	{
		Schema: "eye(SymInt n, " + factoryArgs,
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("eye.m", a.Int(0), a.Int(0), Kw("dtype", a.V[1]))) },
	},
	{
		Schema: "eye.m(SymInt n, SymInt m, " + factoryArgs,
		Shape: func(a *Args) []Meta {
			Check(a.I64(0) >= 0, "n must be greater or equal to 0, got %v", a.Int(0))
			Check(a.I64(1) >= 0, "m must be greater or equal to 0, got %v", a.Int(1))
			return []Meta{Contig(a.DType(2, tensor.Float32), a.Int(0), a.Int(1))}
		},
		CPU: func(k *Kernel) {
			o := k.Out[0]
			fillAll(k.Pool, o, IntS(0))
			n := min(o.Sizes()[0], o.Sizes()[1])
			fillAll(k.Pool, o.WithView([]int64{n}, []int64{o.Strides()[0] + o.Strides()[1]}, o.Offset()), IntS(1))
		},
	},
	trianglePoints("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", true),
	trianglePoints("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", false),
}

// fresh is contiguous memory of the sizes in argument size, with the dtype in argument dt (def for None).
func fresh(a *Args, size, dt int, def tensor.DType) Meta {
	sizes := a.Ints(size)
	for _, s := range sizes {
		Check(s.Ge(symbolic.N(0)), "Trying to create tensor with negative dimension %v: %s", s, sizesText(sizes))
	}
	return Contig(a.DType(dt, def), sizes...)
}

// likeMeta is memory like argument 0, for the arguments of an "_like" operator: dtype at i, memory format at i+4.
func likeMeta(a *Args, i int) Meta {
	x := a.Tensor(0)
	return LikeMeta(x, a.DType(i, x.DType), a.MemoryFormat(i+4))
}

func likeDense(x *Value) Meta { return LikeMeta(x, x.DType, PreserveFormat) }

func constOp(schema string, size int, v int64) Op {
	return Op{
		Schema: schema,
		Tags:   SizesOnly,
		Shape: func(a *Args) []Meta {
			def := tensor.Float32
			if size == 1 {
				def = a.Tensor(0).DType
			}
			return []Meta{fresh(a, size, size+1, def)}
		},
		CPU: func(k *Kernel) { fillAll(k.Pool, k.Out[0], IntS(v)) },
	}
}

func constLikeOp(schema string, v int64) Op {
	return Op{
		Schema: schema,
		Tags:   SizesOnly,
		Shape:  func(a *Args) []Meta { return []Meta{likeMeta(a, 1)} },
		CPU:    func(k *Kernel) { fillAll(k.Pool, k.Out[0], IntS(v)) },
	}
}

// inPlace is the Decomp of an entry whose CPU writes argument 0 itself; check refuses bad arguments.
func inPlace(check func(a *Args)) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		self := a.Tensor(0)
		if check != nil {
			check(a)
		}
		Check(!internalOverlap(self), "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.")
		if self.Conj || self.Neg {
			plain := b.Call("clone", self)
			run := &Args{Op: a.Op, V: append([]any{plain}, a.V[1:]...)}
			b.Exec.Run(a.Op, run, One(plain))
			b.Call("copy_", self, plain)
			return One(self)
		}
		b.Exec.Run(a.Op, detachOthers(b, a), One(self))
		return One(self)
	}
}

// detachOthers copies those tensors among the arguments after the first that share its storage.
func detachOthers(b *Build, a *Args) *Args {
	self := a.Tensor(0)
	c := a
	fix := func(v *Value) *Value {
		if v != nil && !v.Wrapped && mayShare(self, v) {
			return b.Call("clone", v)
		}
		return v
	}
	for i := 1; i < len(a.V); i++ {
		switch v := a.V[i].(type) {
		case *Value:
			if w := fix(v); w != v {
				if c == a {
					c = &Args{Op: a.Op, V: append([]any(nil), a.V...)}
				}
				c.V[i] = w
			}
		case []*Value:
			ws := append([]*Value(nil), v...)
			for j := range ws {
				ws[j] = fix(ws[j])
			}
			if c == a {
				c = &Args{Op: a.Op, V: append([]any(nil), a.V...)}
			}
			c.V[i] = ws
		}
	}
	return c
}

func checkedStrides(sizes, strides []symbolic.Int) []symbolic.Int {
	Check(len(sizes) == len(strides), "dimensionality of sizes (%d) must match dimensionality of strides (%d)", len(sizes), len(strides))
	for _, s := range strides {
		Check(s.Ge(symbolic.N(0)), "empty_strided: negative strides are not supported, got %s", sizesText(strides))
	}
	return strides
}

// permutedStrides lays sizes out densely with the given order of dimensions, outermost first.
func permutedStrides(sizes []symbolic.Int, layout []int64) []symbolic.Int {
	n := len(sizes)
	Check(len(layout) == n, "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = %d is not equal to len(physical_layout) = %d", n, len(layout))
	st := make([]symbolic.Int, n)
	seen := make([]bool, n)
	next := symbolic.N(1)
	for i := n - 1; i >= 0; i-- {
		d := layout[i]
		Check(d >= 0 && d < int64(n), "Dimension out of range (expected to be between 0 and %d, but got %d at index %d).  NB: negative dims not currently supported; file an issue if you want it.", n-1, d, i)
		Check(!seen[d], "Duplicate dim not allowed")
		seen[d] = true
		st[d] = next
		next = next.Mul(atLeast1(sizes[d]))
	}
	return st
}

// scalarIn makes the 0-d tensor of a number in a dtype, and refuses numbers that an integer type cannot hold.
func scalarIn(dt tensor.DType, s Scalar) *tensor.Tensor {
	if !dt.IsComplex() && s.Kind == ComplexScalar && imag(s.C) != 0 {
		Fail("value cannot be converted to type %s without overflow", cppType(dt))
	}
	if dt.IsInt() && dt != tensor.Int64 && dt != tensor.Uint64 {
		lo, hi := intRange(dt)
		if v := s.Float64(); v > hi || v < lo && !(dt.IsUnsigned() && v >= -hi) || v != v {
			Fail("value cannot be converted to type %s without overflow", cppType(dt))
		}
	}
	t := tensor.New(dt)
	Copy(nil, t, WrapScalar(s).constant())
	return t
}

// constant is the tensor of a wrapped number, by the hint of a symbolic one.
func (v *Value) constant() *tensor.Tensor {
	if v.T != nil {
		return v.T
	}
	n, _ := v.Ref.(symbolic.Int)
	t, _ := tensor.FromSlice([]int64{n.Int64()})
	return t.WithView(nil, nil, 0)
}

func intRange(dt tensor.DType) (lo, hi float64) {
	bits := float64(8 * dt.Size())
	if dt.IsUnsigned() {
		return 0, math.Exp2(bits) - 1
	}
	return -math.Exp2(bits - 1), math.Exp2(bits-1) - 1
}

func cppType(dt tensor.DType) string {
	switch dt {
	case tensor.Float32:
		return "float"
	case tensor.Float64:
		return "double"
	case tensor.Bool:
		return "bool"
	case tensor.Float16:
		return "at::Half"
	case tensor.BFloat16:
		return "at::BFloat16"
	}
	if dt.IsInt() {
		return dt.String() + "_t"
	}
	return dt.String()
}

// fillAll stores one number in every element.
func fillAll(p *pool.Pool, t *tensor.Tensor, s Scalar) {
	if t.Numel() > 0 {
		Copy(p, t, scalarIn(t.DType(), s))
	}
}

// scalarType is the default dtype of a result that is made of numbers: int64 if all are integers, else float32.
func scalarType(ss ...Scalar) tensor.DType {
	for _, s := range ss {
		if s.Kind > IntScalar {
			return tensor.Float32
		}
	}
	return tensor.Int64
}

func checkRange(start, end, step float64) {
	Check(step != 0, "step must be nonzero")
	Check(!math.IsInf(start, 0) && !math.IsInf(end, 0) && start == start && end == end, "unsupported range: %v -> %v", start, end)
	Check(step > 0 && end >= start || step < 0 && end <= start, "upper bound and lower bound inconsistent with step sign")
}

func shapeArange(a *Args) []Meta {
	start, end, step := a.Scalar(0), a.Scalar(1), a.Scalar(2)
	dt := a.DType(3, scalarType(start, end, step))
	if scalarType(start, end, step) == tensor.Int64 {
		span, by := end.I.Sub(start.I), step.I
		Check(by.Ne(symbolic.N(0)), "step must be nonzero")
		up := by.Gt(symbolic.N(0))
		Check(up && span.Ge(symbolic.N(0)) || !up && span.Le(symbolic.N(0)), "upper bound and lower bound inconsistent with step sign")
		if by.Lt(symbolic.N(0)) {
			span, by = span.Neg(), by.Neg()
		}
		if by.Ne(symbolic.N(1)) {
			span = span.Add(by).SubN(1).FloorDiv(by)
		}
		return []Meta{Contig(dt, span)}
	}
	checkRange(start.Float64(), end.Float64(), step.Float64())
	n := math.Ceil((end.Float64() - start.Float64()) / step.Float64())
	if dt == tensor.Int64 {
		Check(step.Int64() != 0, "step must be nonzero")
		n = math.Ceil(float64(end.Int64()-start.Int64()) / float64(step.Int64()))
	}
	Check(n >= 0 && n <= math.MaxInt64, "invalid size, possible overflow?")
	return []Meta{Contig(dt, symbolic.N(int64(n)))}
}

// writeRange stores start + i*step: integers exactly, floats in double.
func writeRange(out *tensor.Tensor, start, step Scalar) {
	n := int(out.Numel())
	if out.DType().IsIntegral() {
		v := make([]int64, n)
		s, d := start.Int64(), step.Int64()
		for i := range v {
			v[i] = s + int64(i)*d
		}
		t, _ := tensor.FromSlice(v, int64(n))
		Copy(nil, out, t)
		return
	}
	v := make([]float64, n)
	s, d := start.Float64(), step.Float64()
	for i := range v {
		v[i] = s + float64(i)*d
	}
	t, _ := tensor.FromSlice(v, int64(n))
	Copy(nil, out, t)
}

// writeLinspace stores evenly spaced numbers, the upper half counted from the end; with a base, its powers.
func writeLinspace(out *tensor.Tensor, start, end Scalar, base *float64) {
	n := int(out.Numel())
	if n == 0 {
		return
	}
	dt := out.DType()
	switch {
	case dt.IsComplex():
		v := make([]complex128, n)
		s, e := start.Complex(), end.Complex()
		d := (e - s) / complex(max(float64(n-1), 1), 0)
		for i := range v {
			if i < (n+1)/2 || n == 1 {
				v[i] = s + d*complex(float64(i), 0)
			} else {
				v[i] = e - d*complex(float64(n-i-1), 0)
			}
			if base != nil {
				v[i] = powComplex(*base, v[i])
			}
		}
		t, _ := tensor.FromSlice(v, int64(n))
		Copy(nil, out, t)
	case KindOf(dt) == KF32:
		v := make([]float32, n)
		spread(v, roundTo(dt, start.Float64()), roundTo(dt, end.Float64()), func(f float64) float32 { return float32(roundTo(dt, f)) })
		if base != nil {
			for i := range v {
				v[i] = float32(math.Pow(roundTo(dt, *base), float64(v[i])))
			}
		}
		t, _ := tensor.FromSlice(v, int64(n))
		Copy(nil, out, t)
	default:
		v := make([]float64, n)
		s, e := start.Float64(), end.Float64()
		if dt.IsIntegral() {
			s, e = math.Trunc(s), math.Trunc(e)
		}
		spread(v, s, e, func(f float64) float64 { return f })
		if base != nil {
			for i := range v {
				v[i] = math.Pow(*base, v[i])
			}
		}
		t, _ := tensor.FromSlice(v, int64(n))
		Copy(nil, out, t)
	}
}

// powComplex is base**z for a real base.
func powComplex(base float64, z complex128) complex128 {
	r, phi := math.Pow(base, real(z)), imag(z)*math.Log(base)
	return complex(r*math.Cos(phi), r*math.Sin(phi))
}

// roundTo rounds to the precision in which a dtype's numbers are handed to float32 kernels.
func roundTo(dt tensor.DType, f float64) float64 {
	switch dt {
	case tensor.Float16:
		return float64(tensor.F16ToF32(tensor.F32ToF16(float32(f))))
	case tensor.BFloat16:
		return float64(tensor.BF16ToF32(tensor.F32ToBF16(float32(f))))
	}
	return float64(float32(f))
}

func spread[T float32 | float64](v []T, start, end float64, round func(float64) T) {
	n := len(v)
	if n == 1 {
		v[0] = T(start)
		return
	}
	s, e := T(start), T(end)
	d := round(float64((e - s) / T(n-1)))
	for i := range v {
		if i < n/2 {
			v[i] = s + d*T(i)
		} else {
			v[i] = e - d*T(n-1-i)
		}
	}
}

// spaceOverload is linspace or logspace with a 0-d tensor for a number.
func spaceOverload(schema, name string, hasBase bool) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		args := append([]any(nil), a.V...)
		for i := range 2 {
			if v := a.OptTensor(i); v != nil {
				Check(v.Dim() == 0, "%s only supports 0-dimensional start and end tensors, but got start with %d dimension(s) and end with %d dimension(s).", name, v.Dim(), v.Dim())
				args[i] = b.CallResult("item", v)
			}
		}
		n := 3
		if hasBase {
			n = 4
		}
		return One(b.Call(name, append(args[:n], Kw("dtype", a.V[n]))...))
	}}
}

// trianglePoints lists the (row, column) pairs of a triangle of a matrix as a [2, n] tensor.
func trianglePoints(schema string, lower bool) Op {
	count := func(row, col, off, i int64) (lo, hi int64) { // columns of row i
		if lower {
			return 0, min(max(i+off+1, 0), col)
		}
		return min(max(i+off, 0), col), col
	}
	return Op{
		Schema: schema,
		Shape: func(a *Args) []Meta {
			row, col, off := a.I64(0), a.I64(1), a.I64(2)
			Check(row >= 0, "row must be non-negative, got%d", row)
			Check(col >= 0, "col must be non-negative, got%d", col)
			dt := a.DType(3, tensor.Int64)
			Check(dt == tensor.Int64 || dt == tensor.Int32, "\"%s\" not implemented for '%s'", a.Op.schema.Base, dt.CPPName())
			Check(row < 1<<31 && col < 1<<31, "row and col are too large: %d, %d", row, col)
			n := int64(0)
			for i := range row {
				lo, hi := count(row, col, off, i)
				n += hi - lo
			}
			return []Meta{Contig(dt, symbolic.N(2), symbolic.N(n))}
		},
		CPU: func(k *Kernel) {
			row, col, off := k.I64(0), k.I64(1), k.I64(2)
			n := k.Out[0].Sizes()[1]
			v := make([]int64, 0, 2*n)
			cols := make([]int64, 0, n)
			for i := range row {
				lo, hi := count(row, col, off, i)
				for j := lo; j < hi; j++ {
					v, cols = append(v, i), append(cols, j)
				}
			}
			t, _ := tensor.FromSlice(append(v, cols...), 2, n)
			Copy(k.Pool, k.Out[0], t)
		},
	}
}
