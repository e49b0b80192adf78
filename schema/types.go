package schema

import "encoding/json"

// Entry is one member of a [Map].
type Entry[V any] struct {
	Key   string
	Value V
}

// Map is a JSON object used as a map, in the order of the text. Keys are unique after decoding.
type Map[V any] []Entry[V]

// Get finds a key by linear search.
func (m Map[V]) Get(key string) (v V, ok bool) {
	for i := range m {
		if m[i].Key == key {
			return m[i].Value, true
		}
	}
	return v, false
}

// Unknown holds the fields of a struct that this version of the schema does not know, so that they can be written back.
type Unknown struct{ list *Map[json.RawMessage] }

func (u *Unknown) unknown() *Unknown { return u }

// Fields lists the unknown fields with their JSON texts.
func (u *Unknown) Fields() Map[json.RawMessage] {
	if u.list == nil {
		return nil
	}
	return *u.list
}

// ScalarType is a dtype in the serializer's own numbering.
type ScalarType int

// The scalar types.
const (
	UnknownScalar ScalarType = 0
	Byte          ScalarType = 1
	Char          ScalarType = 2
	Short         ScalarType = 3
	Int           ScalarType = 4
	Long          ScalarType = 5
	Half          ScalarType = 6
	Float         ScalarType = 7
	Double        ScalarType = 8
	ComplexHalf   ScalarType = 9
	ComplexFloat  ScalarType = 10
	ComplexDouble ScalarType = 11
	Bool          ScalarType = 12
	BFloat16      ScalarType = 13
	UInt16        ScalarType = 28
	Float8E4M3FN  ScalarType = 29
	Float8E5M2    ScalarType = 30
	Float8E4M3UZ  ScalarType = 31
	Float8E5M2UZ  ScalarType = 32
	Float8E8M0FNU ScalarType = 33
	UInt32        ScalarType = 34
	UInt64        ScalarType = 35
)

// Layout is a tensor layout.
type Layout int

// The layouts.
const (
	UnknownLayout Layout = iota
	SparseCoo
	SparseCsr
	SparseCsc
	SparseBsr
	SparseBsc
	MKLDNN
	Strided
)

// MemoryFormat is a memory format.
type MemoryFormat int

// The memory formats.
const (
	UnknownFormat MemoryFormat = iota
	ContiguousFormat
	ChannelsLast
	ChannelsLast3d
	PreserveFormat
)

// ArgumentKind tells how a call wrote an argument. Null in the text is UnknownKind.
type ArgumentKind int

// The argument kinds.
const (
	UnknownKind ArgumentKind = iota
	Positional
	Keyword
)

// Device names a device; Index is nil for the default one.
type Device struct {
	Type  string
	Index *int64
	Unknown
}

// SymExpr is a symbolic expression as text; Hint is an int64, bool or float64, or nil.
type SymExpr struct {
	Expr string
	Hint any
	Unknown
}

// SymInt is an expression, or Int if Expr is nil.
type SymInt struct {
	Expr *SymExpr
	Int  int64
}

// SymFloat is an expression, or Float if Expr is nil.
type SymFloat struct {
	Expr  *SymExpr
	Float float64
}

// SymBool is an expression, or Bool if Expr is nil.
type SymBool struct {
	Expr *SymExpr
	Bool bool
}

// TensorMeta describes a tensor.
type TensorMeta struct {
	DType         ScalarType
	Sizes         []SymInt
	RequiresGrad  bool
	Device        Device
	Strides       []SymInt
	StorageOffset SymInt
	Layout        Layout
	Unknown
}

// SymIntArgument is the value called Name, or Int if Name is "".
type SymIntArgument struct {
	Name string
	Int  int64
}

// SymFloatArgument is the value called Name, or Float if Name is "".
type SymFloatArgument struct {
	Name  string
	Float float64
}

// SymBoolArgument is the value called Name, or Bool if Name is "".
type SymBoolArgument struct {
	Name string
	Bool bool
}

// TensorArgument is the tensor called Name.
type TensorArgument struct {
	Name string
	Unknown
}

// TokenArgument is the ordering token called Name.
type TokenArgument struct {
	Name string
	Unknown
}

// OptionalTensorArgument is a tensor, or None if Tensor is nil.
type OptionalTensorArgument struct{ Tensor *TensorArgument }

// GraphArgument is a graph as an argument, under its attribute name.
type GraphArgument struct {
	Name  string
	Graph Graph
	Unknown
}

// CustomObjArgument is a custom object called Name of class ClassFQN.
type CustomObjArgument struct {
	Name     string
	ClassFQN string
	Unknown
}

// ComplexValue is a complex number.
type ComplexValue struct {
	Real, Imag float64
	Unknown
}

// ArgTag is the tag of an [Argument].
type ArgTag string

// The tags, each with the Go type of its value.
const (
	AsNone             ArgTag = "as_none"               // bool
	AsTensor           ArgTag = "as_tensor"             // TensorArgument
	AsTensors          ArgTag = "as_tensors"            // []TensorArgument
	AsInt              ArgTag = "as_int"                // int64
	AsInts             ArgTag = "as_ints"               // []int64
	AsFloat            ArgTag = "as_float"              // float64
	AsFloats           ArgTag = "as_floats"             // []float64
	AsString           ArgTag = "as_string"             // string
	AsStrings          ArgTag = "as_strings"            // []string
	AsSymInt           ArgTag = "as_sym_int"            // SymIntArgument
	AsSymInts          ArgTag = "as_sym_ints"           // []SymIntArgument
	AsScalarType       ArgTag = "as_scalar_type"        // ScalarType
	AsMemoryFormat     ArgTag = "as_memory_format"      // MemoryFormat
	AsLayout           ArgTag = "as_layout"             // Layout
	AsDevice           ArgTag = "as_device"             // Device
	AsBool             ArgTag = "as_bool"               // bool
	AsBools            ArgTag = "as_bools"              // []bool
	AsSymBool          ArgTag = "as_sym_bool"           // SymBoolArgument
	AsSymBools         ArgTag = "as_sym_bools"          // []SymBoolArgument
	AsGraph            ArgTag = "as_graph"              // *GraphArgument
	AsOptionalTensors  ArgTag = "as_optional_tensors"   // []OptionalTensorArgument
	AsCustomObj        ArgTag = "as_custom_obj"         // CustomObjArgument
	AsOperator         ArgTag = "as_operator"           // string
	AsSymFloat         ArgTag = "as_sym_float"          // SymFloatArgument
	AsSymFloats        ArgTag = "as_sym_floats"         // []SymFloatArgument
	AsOptionalTensor   ArgTag = "as_optional_tensor"    // OptionalTensorArgument
	AsComplex          ArgTag = "as_complex"            // ComplexValue
	AsNestedTensors    ArgTag = "as_nested_tensors"     // [][]TensorArgument
	AsIntLists         ArgTag = "as_int_lists"          // [][]int64
	AsStringToArgument ArgTag = "as_string_to_argument" // Map[Argument]
	AsFloatLists       ArgTag = "as_float_lists"        // [][]float64
)

// Argument is the union of all arguments; the tag tells the Go type of Value.
type Argument struct {
	Tag   ArgTag
	Value any
}

// NamedArgument is an argument of a call.
type NamedArgument struct {
	Name string
	Arg  Argument
	Kind ArgumentKind
	Unknown
}

// Node is a call. Name is "" where the text has null.
type Node struct {
	Target                  string
	Inputs                  []NamedArgument
	Outputs                 []Argument
	Metadata                Map[string]
	IsHOPSingleTensorReturn *bool
	Name                    string
	Unknown
}

// Graph is a list of calls with the metadata of all values.
type Graph struct {
	Inputs               []Argument
	Outputs              []Argument
	Nodes                []Node
	TensorValues         Map[TensorMeta]
	SymIntValues         Map[SymInt]
	SymBoolValues        Map[SymBool]
	IsSingleTensorReturn bool
	CustomObjValues      Map[CustomObjArgument]
	SymFloatValues       Map[SymFloat]
	Unknown
}

// UserInputSpec is an input that the caller gives.
type UserInputSpec struct {
	Arg Argument
	Unknown
}

// ConstantValue is nil, int64, float64, string or bool.
type ConstantValue struct{ Value any }

// InputToConstantInputSpec is an input that the program was specialised for.
type InputToConstantInputSpec struct {
	Name  string
	Value ConstantValue
	Unknown
}

// InputToParameterSpec is a parameter.
type InputToParameterSpec struct {
	Arg           TensorArgument
	ParameterName string
	Unknown
}

// InputToBufferSpec is a buffer.
type InputToBufferSpec struct {
	Arg        TensorArgument
	BufferName string
	Persistent bool
	Unknown
}

// InputToTensorConstantSpec is a tensor constant.
type InputToTensorConstantSpec struct {
	Arg                TensorArgument
	TensorConstantName string
	Unknown
}

// InputToCustomObjSpec is a custom object.
type InputToCustomObjSpec struct {
	Arg           CustomObjArgument
	CustomObjName string
	Unknown
}

// InputTokenSpec is an ordering token.
type InputTokenSpec struct {
	Arg TokenArgument
	Unknown
}

// InputSpec is the union of input specs: a pointer to one of the structs above.
type InputSpec struct{ Value any }

// UserOutputSpec is an output that the caller gets.
type UserOutputSpec struct {
	Arg Argument
	Unknown
}

// LossOutputSpec is the loss of a joint program.
type LossOutputSpec struct {
	Arg TensorArgument
	Unknown
}

// BufferMutationSpec is the new value of a buffer.
type BufferMutationSpec struct {
	Arg        TensorArgument
	BufferName string
	Unknown
}

// ParameterMutationSpec is the new value of a parameter.
type ParameterMutationSpec struct {
	Arg           TensorArgument
	ParameterName string
	Unknown
}

// GradientToParameterSpec is the gradient of a parameter.
type GradientToParameterSpec struct {
	Arg           TensorArgument
	ParameterName string
	Unknown
}

// GradientToUserInputSpec is the gradient of an input.
type GradientToUserInputSpec struct {
	Arg           TensorArgument
	UserInputName string
	Unknown
}

// UserInputMutationSpec is the new value of an input.
type UserInputMutationSpec struct {
	Arg           TensorArgument
	UserInputName string
	Unknown
}

// OutputTokenSpec is an ordering token.
type OutputTokenSpec struct {
	Arg TokenArgument
	Unknown
}

// OutputSpec is the union of output specs: a pointer to one of the structs above.
type OutputSpec struct{ Value any }

// GraphSignature describes inputs and outputs in graph order.
type GraphSignature struct {
	InputSpecs  []InputSpec
	OutputSpecs []OutputSpec
	Unknown
}

// RangeConstraint is an inclusive range; nil is unbounded.
type RangeConstraint struct {
	Min, Max *int64
	Unknown
}

// ModuleCallSignature is the calling convention of a module. ForwardArgNames is nil where the text has null.
type ModuleCallSignature struct {
	Inputs          []Argument
	Outputs         []Argument
	InSpec          string
	OutSpec         string
	ForwardArgNames []string
	Unknown
}

// ModuleCallEntry is a module and, if recorded, its calling convention.
type ModuleCallEntry struct {
	FQN       string
	Signature *ModuleCallSignature
	Unknown
}

// NamedTupleDef lists the fields of a named tuple.
type NamedTupleDef struct {
	FieldNames []string
	Unknown
}

// GraphModule is a graph with its signature.
type GraphModule struct {
	Graph                    Graph
	Signature                GraphSignature
	ModuleCallGraph          []ModuleCallEntry
	Metadata                 Map[string]
	TreespecNamedtupleFields Map[NamedTupleDef]
	Unknown
}

// SchemaVersion is the version of the form a program is written in.
type SchemaVersion struct {
	Major, Minor int64
	Unknown
}

// ExportedProgram is a whole program without weights.
type ExportedProgram struct {
	GraphModule      GraphModule
	OpsetVersion     Map[int64]
	RangeConstraints Map[RangeConstraint]
	SchemaVersion    SchemaVersion
	Verifiers        []string
	TorchVersion     string
	GuardsCode       []string
	Unknown
}

// PayloadMeta describes the record of one weight or constant.
type PayloadMeta struct {
	PathName   string
	IsParam    bool
	UsePickle  bool
	TensorMeta *TensorMeta
	Unknown
}

// PayloadConfig maps names to records.
type PayloadConfig struct {
	Config Map[PayloadMeta]
	Unknown
}

// AOTInductorModelPickleData describes a compiled model for older predictors.
type AOTInductorModelPickleData struct {
	LibraryBasename          string
	InputNames               []string
	OutputNames              []string
	FloatingPointInputDtype  *int64
	FloatingPointOutputDtype *int64
	AOTInductorModelIsCPU    *bool
	Unknown
}

// ExternKernelNode is a fallback call of a compiled model.
type ExternKernelNode struct {
	Name string
	Node Node
	Unknown
}

// ExternKernelNodes lists the fallback calls of a compiled model.
type ExternKernelNodes struct {
	Nodes []ExternKernelNode
	Unknown
}
