package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// scalarOps give numbers of tensors.
var scalarOps = []Op{
	numberOp("sym_size.int(Tensor self, int dim) -> SymInt", Core, sizeAt),
	numberOp("size.int(Tensor self, int dim) -> int", 0, sizeAt),
	numberOp("sym_stride.int(Tensor self, int dim) -> SymInt", Core, strideAt),
	numberOp("stride.int(Tensor self, int dim) -> int", 0, strideAt),
	numberOp("sym_numel(Tensor self) -> SymInt", Core, func(a *Args) any { return intOf(a.Tensor(0).Numel()) }),
	numberOp("numel(Tensor self) -> int", 0, func(a *Args) any { return intOf(a.Tensor(0).Numel()) }),
	numberOp("sym_storage_offset(Tensor self) -> SymInt", Core, func(a *Args) any { return intOf(a.Tensor(0).Offset) }),
	numberOp("storage_offset(Tensor self) -> int", 0, func(a *Args) any { return intOf(a.Tensor(0).Offset) }),
	numberOp("dim(Tensor self) -> int", 0, func(a *Args) any { return IntS(int64(a.Tensor(0).Dim())) }),
	numberOp("_version(Tensor self) -> int", 0, func(*Args) any { return IntS(0) }),
	numberOp("output_nr(Tensor self) -> int", 0, func(*Args) any { return IntS(0) }),
	numberOp("sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool", Core, isContiguousArg),
	numberOp("is_contiguous(Tensor self) -> bool", 0, func(a *Args) any { return BoolS(a.Tensor(0).IsContiguous()) }),
	numberOp("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool", 0, isContiguousArg),
	numberOp("is_complex(Tensor self) -> bool", 0, func(a *Args) any { return BoolS(a.Tensor(0).DType.IsComplex()) }),
	numberOp("is_floating_point(Tensor self) -> bool", 0, func(a *Args) any { return BoolS(a.Tensor(0).DType.IsFloat()) }),
	numberOp("is_signed(Tensor self) -> bool", 0, func(a *Args) any {
		dt := a.Tensor(0).DType
		return BoolS(dt != tensor.Bool && !dt.IsUnsigned())
	}),
	numberOp("is_conj(Tensor self) -> bool", 0, func(a *Args) any { return BoolS(a.Tensor(0).Conj) }),
	numberOp("is_neg(Tensor self) -> bool", 0, func(a *Args) any { return BoolS(a.Tensor(0).Neg) }),
	numberOp("is_inference(Tensor self) -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("is_leaf(Tensor self) -> bool", 0, func(*Args) any { return BoolS(true) }),
	numberOp("is_distributed(Tensor self) -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("is_pinned(Tensor self, Device? device=None) -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("_is_zerotensor(Tensor self) -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("is_same_size(Tensor self, Tensor other) -> bool", 0, func(a *Args) any {
		return BoolS(SameSizes(a.Tensor(0).Sizes, a.Tensor(1).Sizes))
	}),
	numberOp("_has_same_storage_numel(Tensor self, Tensor other) -> bool", DataDependent, func(a *Args) any {
		x, y := a.Tensor(0), a.Tensor(1)
		return BoolS(len(x.T.Storage().Bytes())/x.DType.Size() == len(y.T.Storage().Bytes())/y.DType.Size())
	}),
	numberOp("is_set_to(Tensor self, Tensor tensor) -> bool", DataDependent, func(a *Args) any {
		x, y := a.Tensor(0), a.Tensor(1)
		return BoolS(x.T.Storage() == y.T.Storage() && x.Offset.Eq(y.Offset) && SameSizes(x.Sizes, y.Sizes) && sameInts(x.Strides, y.Strides))
	}),
	numberOp("_debug_has_internal_overlap(Tensor self) -> int", 0, func(a *Args) any {
		switch x := a.Tensor(0); {
		case x.IsDense():
			return IntS(0)
		case internalOverlap(x):
			return IntS(1)
		}
		return IntS(2)
	}),
	numberOp("item(Tensor self) -> Scalar", DataDependent, itemResult),
	numberOp("_local_scalar_dense(Tensor self) -> Scalar", Core|DataDependent, itemResult),
	numberOp("prims::item(Tensor a) -> Scalar", DataDependent, itemResult),
	numberOp("is_nonzero(Tensor self) -> bool", DataDependent, func(a *Args) any {
		switch n := a.Tensor(0).Numel().Int64(); {
		case n == 0:
			Fail("Boolean value of Tensor with no values is ambiguous")
		case n > 1:
			Fail("Boolean value of Tensor with more than one value is ambiguous")
		}
		return BoolS(itemResult(a).(Scalar).Bool())
	}),
	numberOp("equal(Tensor self, Tensor other) -> bool", DataDependent, func(a *Args) any { return BoolS(equalTensors(a.Tensor(0), a.Tensor(1))) }),
	numberOp("can_cast(ScalarType from_, ScalarType to) -> bool", 0, func(a *Args) any {
		return BoolS(CanCast(a.DType(0, tensor.Float32), a.DType(1, tensor.Float32)))
	}),
	numberOp("promote_types(ScalarType type1, ScalarType type2) -> ScalarType", 0, func(a *Args) any {
		return Promote(a.DType(0, tensor.Float32), a.DType(1, tensor.Float32))
	}),
	numberOp("result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", 0, resultTypeOf),
	numberOp("result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType", 0, resultTypeOf),
	numberOp("result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType", 0, resultTypeOf),
	numberOp("result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType", 0, resultTypeOf),
	numberOp("is_vulkan_available() -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("_nnpack_available() -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("_use_cudnn_rnn_flatten_weight() -> bool", 0, func(*Args) any { return BoolS(false) }),
	numberOp("prims::maximum_value(ScalarType dtype) -> Scalar", 0, func(a *Args) any { return extremeOf(a.DType(0, tensor.Float32), false) }),
	numberOp("prims::minimum_value(ScalarType dtype) -> Scalar", 0, func(a *Args) any { return extremeOf(a.DType(0, tensor.Float32), true) }),
}

// numberOp is an entry that returns a number.
func numberOp(schema string, tags Tag, f func(a *Args) any) Op {
	return Op{Schema: schema, Tags: tags | LazyBits, Result: f}
}

func intOf(v symbolic.Int) Scalar { return Scalar{Kind: IntScalar, I: v} }

func sizeAt(a *Args) any {
	x := a.Tensor(0)
	if x.Dim() == 0 {
		FailIndex("Dimension specified as %d but tensor has no dimensions", a.I64(1))
	}
	return intOf(x.Sizes[WrapDim(a.I64(1), x.Dim())])
}

func strideAt(a *Args) any {
	x := a.Tensor(0)
	if x.Dim() == 0 {
		FailIndex("Dimension specified as %d but tensor has no dimensions", a.I64(1))
	}
	return intOf(x.Strides[WrapDim(a.I64(1), x.Dim())])
}

func isContiguousArg(a *Args) any {
	x := a.Tensor(0)
	switch f := a.MemoryFormat(1); f {
	case ChannelsLast, ChannelsLast3d:
		return BoolS(x.Dim() == 4+int(f-ChannelsLast) && x.IsChannelsLast())
	}
	return BoolS(x.IsContiguous())
}

func itemResult(a *Args) any {
	x := a.Tensor(0)
	if x.T == nil {
		panic(&DataError{a.Op.Name()})
	}
	s, err := Item(x.T)
	if err != nil {
		panic(err)
	}
	return s
}

func resultTypeOf(a *Args) any {
	vals := make([]*Value, len(a.V))
	for i := range a.V {
		if s, ok := a.OptScalar(i); ok {
			vals[i] = WrapScalar(s)
		} else {
			vals[i] = a.Tensor(i)
		}
	}
	return ResultType(vals...)
}

// equalTensors reports equal sizes and elements; NaN differs from itself.
func equalTensors(x, y *Value) bool {
	Check(x.DType == y.DType, "Expected object of data type %s but got data type %s for argument 'other' in call to equal", x.DType.CPPName(), y.DType.CPPName())
	if !SameSizes(x.Sizes, y.Sizes) {
		return false
	}
	k := &Kernel{}
	xs, ys := k.contiguous(x.T), k.contiguous(y.T)
	same := true
	kind := KindOf(x.DType)
	Loop(nil, nil, []Operand{{T: xs, Kind: kind}, {T: ys, Kind: kind}}, func(_, ins []Block) {
		switch kind {
		case KBool:
			same = same && equalBlock(As[uint8](ins[0]), As[uint8](ins[1]))
		case KI64:
			same = same && equalBlock(As[int64](ins[0]), As[int64](ins[1]))
		case KU64:
			same = same && equalBlock(As[uint64](ins[0]), As[uint64](ins[1]))
		case KF32:
			same = same && equalBlock(As[float32](ins[0]), As[float32](ins[1]))
		case KF64:
			same = same && equalBlock(As[float64](ins[0]), As[float64](ins[1]))
		case KC64:
			same = same && equalBlock(As[complex64](ins[0]), As[complex64](ins[1]))
		default:
			same = same && equalBlock(As[complex128](ins[0]), As[complex128](ins[1]))
		}
	})
	return same
}

func equalBlock[T Compute](x, y []T) bool {
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}
