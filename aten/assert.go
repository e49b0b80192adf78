package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// assertOps refuse a run whose values are not what the program was exported for.
var assertOps = []Op{
	{Schema: "_assert_async(Tensor self) -> ()", Tags: Effect, CPU: func(k *Kernel) {
		assertTensor(k.T(0), "Expected Tensor with single nonzero value, but got zero")
	}},
	{Schema: "_assert_async.msg(Tensor self, str assert_msg) -> ()", Tags: Effect, CPU: func(k *Kernel) {
		assertTensor(k.T(0), k.Str(1))
	}},
	{
		Schema: "_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
		Tags:   Effect,
		Shape:  func(a *Args) []Meta { return []Meta{LikeMeta(a.Tensor(2), a.Tensor(2).DType, PreserveFormat)} },
		CPU: func(k *Kernel) {
			assertTensor(k.T(0), k.Str(1))
			Copy(nil, k.Out[0], k.T(2))
		},
	},
	{Schema: "_assert_scalar(Scalar self, str assert_msg) -> ()", Tags: Effect, CPU: func(k *Kernel) {
		Check(k.Scalar(0).Bool(), "%s", k.Str(1))
	}},
	{
		Schema: "_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor",
		Tags:   Effect,
		Shape: func(a *Args) []Meta {
			Check(a.Scalar(0).Bool(), "%s", a.Str(1))
			return []Meta{LikeMeta(a.Tensor(2), a.Tensor(2).DType, PreserveFormat)}
		},
		CPU: func(k *Kernel) { Copy(nil, k.Out[0], k.T(2)) },
	},
	{
		Schema: "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
		Tags:   Effect | LazyBits,
		Decomp: func(_ *Build, a *Args) []*Value {
			checkMetadata(a)
			return nil
		},
	},
	rangeOp("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", false),
	rangeOp("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", true),
	tokenRangeOp("_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor", false),
	tokenRangeOp("_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor", true),
	{
		Schema: "_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
		Shape: func(*Args) []Meta {
			return []Meta{{DType: tensor.Float32, Sizes: []symbolic.Int{}, Strides: []symbolic.Int{}, Zero: true}}
		},
		CPU: func(*Kernel) {},
	},
	{Schema: "_print(str s) -> ()", Tags: Effect, Decomp: func(*Build, *Args) []*Value { return nil }, Note: "prints nothing"},
	{Schema: "_propagate_xla_data(Tensor input, Tensor output) -> ()", Decomp: func(*Build, *Args) []*Value { return nil }},
	{Schema: "prims::_sink_tokens(Tensor[] tokens) -> ()", Decomp: func(*Build, *Args) []*Value { return nil }},
	{
		Schema: "prims::_make_token() -> Tensor",
		Shape:  func(*Args) []Meta { return []Meta{Contig(tensor.Float32, symbolic.N(0))} },
		CPU:    func(*Kernel) {},
	},
}

func assertTensor(t *tensor.Tensor, msg string) {
	switch n := t.Numel(); {
	case n == 0:
		Fail("Boolean value of Tensor with no values is ambiguous")
	case n > 1:
		Fail("Boolean value of Tensor with more than one value is ambiguous")
	}
	s, err := Item(t)
	if err != nil {
		panic(err)
	}
	Check(s.Bool(), "%s", msg)
}

func checkMetadata(a *Args) {
	x := a.Tensor(0)
	if a.Has(1) && !SameSizes(a.Ints(1), x.Sizes) {
		Fail("Tensor sizes mismatch! Expected: %s, Got: %s", sizesText(a.Ints(1)), sizesText(x.Sizes))
	}
	if a.Has(2) && !SameSizes(a.Ints(2), x.Strides) {
		Fail("Tensor strides mismatch! Expected: %s, Got: %s", sizesText(a.Ints(2)), sizesText(x.Strides))
	}
	if dt := a.DType(3, x.DType); dt != x.DType {
		Fail("Tensor dtype mismatch! Expected: %s, Got: %s", dt.CPPName(), typeMetaName(x.DType))
	}
	if l, ok := a.V[5].(Layout); ok && l != StridedLayout {
		Fail("Tensor layout mismatch! Expected: %d, Got: %d", l, StridedLayout)
	}
}

// typeMetaName is what PyTorch prints of a tensor's own dtype in these messages: the C++ type behind it.
func typeMetaName(dt tensor.DType) string {
	switch dt {
	case tensor.Uint8:
		return "unsigned char"
	case tensor.Int8:
		return "signed char"
	case tensor.Int16:
		return "short int"
	case tensor.Int32:
		return "int"
	case tensor.Int64:
		return "long int"
	case tensor.Uint16:
		return "short unsigned int"
	case tensor.Uint32:
		return "unsigned int"
	case tensor.Uint64:
		return "long unsigned int"
	case tensor.Float32:
		return "float"
	case tensor.Float64:
		return "double"
	case tensor.Bool:
		return "bool"
	case tensor.Complex32:
		return "c10::complex<c10::Half>"
	case tensor.Complex64:
		return "c10::complex<float>"
	case tensor.Complex128:
		return "c10::complex<double>"
	}
	return "c10::" + dt.CPPName()
}

// checkConstrained refuses a size outside [lo, hi]; None leaves a side open, which for a size means at least 0.
func checkConstrained(a *Args, size bool) {
	s := a.Scalar(0)
	Check(s.Kind == IntScalar || s.Kind == BoolScalar, "Constraining SymFloat or Symbool is not yet supported")
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if size {
		lo = 0
	}
	if v, ok := a.OptInt(1); ok {
		lo = v.Int64()
	}
	if v, ok := a.OptInt(2); ok {
		hi = v.Int64()
	}
	Check(!size || hi > 2, "Max value to constrain_range_for_size must be greater than 2. got: %d", hi)
	Check(hi >= lo, "Max must be greater than or equal to min. Got min=%d max=%d", lo, hi)
	if v := s.Int64(); v < lo || v > hi {
		Fail("Invalid value range for %d between [%d, %d].", v, lo, hi)
	}
}

func rangeOp(schema string, size bool) Op {
	return Op{Schema: schema, Tags: Effect, CPU: func(k *Kernel) { checkConstrained(k.Args, size) }}
}

func tokenRangeOp(schema string, size bool) Op {
	return Op{
		Schema: schema,
		Tags:   Effect,
		Shape:  func(a *Args) []Meta { return []Meta{LikeMeta(a.Tensor(3), a.Tensor(3).DType, PreserveFormat)} },
		CPU: func(k *Kernel) {
			checkConstrained(k.Args, size)
			Copy(nil, k.Out[0], k.T(3))
		},
	}
}
