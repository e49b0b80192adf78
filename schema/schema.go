// Package schema is the serialized form of exported programs: PyTorch's JSON schema 8.20 as Go types, and the decoding of
// every older form since PyTorch 2.1 into them. It knows no tensors and runs nothing.
package schema

import (
	"encoding/json"
)

// The version of the schema that these types describe.
const (
	Major = 8
	Minor = 20
	// AtenOpset is the highest operator set version known.
	AtenOpset = 10
)

// Unions are structs of pointers of which exactly one is set; files of PyTorch 2.1 and 2.2 write null for the others.

// Device names a device.
type Device struct {
	Type  string `json:"type"`
	Index *int   `json:"index"`
}

// SymExprHint is the value of an expression while the program was traced.
type SymExprHint struct {
	Int   *int64   `json:"as_int"`
	Bool  *bool    `json:"as_bool"`
	Float *float64 `json:"as_float"`
}

// SymExpr is an expression, as sympy's srepr or (before PyTorch 2.6) as Python text.
type SymExpr struct {
	Expr string       `json:"expr_str"`
	Hint *SymExprHint `json:"hint"`
}

// SymInt is a size: an expression or a number.
type SymInt struct {
	Expr *SymExpr `json:"as_expr"`
	Int  *int64   `json:"as_int"`
}

// SymFloat is a symbolic float.
type SymFloat struct {
	Expr  *SymExpr `json:"as_expr"`
	Float *Float   `json:"as_float"`
}

// SymBool is a symbolic bool.
type SymBool struct {
	Expr *SymExpr `json:"as_expr"`
	Bool *bool    `json:"as_bool"`
}

// TensorMeta describes a tensor; DType and Layout are the serializer's numbers.
type TensorMeta struct {
	DType        int      `json:"dtype"`
	Sizes        []SymInt `json:"sizes"`
	RequiresGrad bool     `json:"requires_grad"`
	Device       Device   `json:"device"`
	Strides      []SymInt `json:"strides"`
	Offset       SymInt   `json:"storage_offset"`
	Layout       int      `json:"layout"`
}

// SymArgument is a symbolic scalar argument: the name of a value or a constant.
type SymArgument struct {
	Name  *string `json:"as_name"`
	Int   *int64  `json:"as_int"`
	Float *Float  `json:"as_float"`
	Bool  *bool   `json:"as_bool"`
}

// TensorArgument names a tensor value.
type TensorArgument struct {
	Name string `json:"name"`
}

// OptionalTensorArgument is an element of a list with None among tensors.
type OptionalTensorArgument struct {
	Tensor *TensorArgument  `json:"as_tensor"`
	None   *json.RawMessage `json:"as_none"`
}

// GraphArgument is a subgraph under its attribute name.
type GraphArgument struct {
	Name  string `json:"name"`
	Graph *Graph `json:"graph"`
}

// CustomObjArgument is a custom object.
type CustomObjArgument struct {
	Name  string `json:"name"`
	Class string `json:"class_fqn"`
}

// ComplexValue is a complex number.
type ComplexValue struct {
	Real Float `json:"real"`
	Imag Float `json:"imag"`
}

// Argument is an argument of a node or an output of a graph.
type Argument struct {
	None            *json.RawMessage          `json:"as_none"`
	Tensor          *TensorArgument           `json:"as_tensor"`
	Tensors         *[]TensorArgument         `json:"as_tensors"`
	Int             *int64                    `json:"as_int"`
	Ints            *[]int64                  `json:"as_ints"`
	Float           *Float                    `json:"as_float"`
	Floats          *[]Float                  `json:"as_floats"`
	String          *string                   `json:"as_string"`
	Strings         *[]string                 `json:"as_strings"`
	SymInt          *SymArgument              `json:"as_sym_int"`
	SymInts         *[]SymArgument            `json:"as_sym_ints"`
	ScalarType      *int                      `json:"as_scalar_type"`
	MemoryFormat    *int                      `json:"as_memory_format"`
	Layout          *int                      `json:"as_layout"`
	Device          *Device                   `json:"as_device"`
	Bool            *bool                     `json:"as_bool"`
	Bools           *[]bool                   `json:"as_bools"`
	SymBool         *SymArgument              `json:"as_sym_bool"`
	SymBools        *[]SymArgument            `json:"as_sym_bools"`
	Graph           *GraphArgument            `json:"as_graph"`
	OptionalTensors *[]OptionalTensorArgument `json:"as_optional_tensors"`
	CustomObj       *CustomObjArgument        `json:"as_custom_obj"`
	Operator        *string                   `json:"as_operator"`
	SymFloat        *SymArgument              `json:"as_sym_float"`
	SymFloats       *[]SymArgument            `json:"as_sym_floats"`
	OptionalTensor  *OptionalTensorArgument   `json:"as_optional_tensor"`
	Complex         *ComplexValue             `json:"as_complex"`
	NestedTensors   *[][]TensorArgument       `json:"as_nested_tensors"`
	IntLists        *[][]int64                `json:"as_int_lists"`
	FloatLists      *[][]Float                `json:"as_float_lists"`
	Dict            *Map[Argument]            `json:"as_string_to_argument"`
}

// NamedArgument is one argument of a node; Kind is 1 for positional, 2 for keyword, nil in old files.
type NamedArgument struct {
	Name string   `json:"name"`
	Arg  Argument `json:"arg"`
	Kind *int     `json:"kind"`
}

// Node is one call.
type Node struct {
	Target   string            `json:"target"`
	Inputs   []NamedArgument   `json:"inputs"`
	Outputs  []Argument        `json:"outputs"`
	Metadata map[string]string `json:"metadata"`
	Single   *bool             `json:"is_hop_single_tensor_return"`
	Name     *string           `json:"name"`
}

// Graph is a graph with the metadata of its values.
type Graph struct {
	Inputs          []Argument             `json:"inputs"`
	Outputs         []Argument             `json:"outputs"`
	Nodes           []Node                 `json:"nodes"`
	TensorValues    Map[TensorMeta]        `json:"tensor_values"`
	SymIntValues    Map[SymInt]            `json:"sym_int_values"`
	SymBoolValues   Map[SymBool]           `json:"sym_bool_values"`
	Single          bool                   `json:"is_single_tensor_return"`
	CustomObjValues Map[CustomObjArgument] `json:"custom_obj_values"`
	SymFloatValues  Map[SymFloat]          `json:"sym_float_values"`
	Constants       Map[string]            `json:"constants"` // 2.1 only: base64 of a torch.save file
}

// ConstantValue is the value of a constant input.
type ConstantValue struct {
	None   *json.RawMessage `json:"as_none"`
	Int    *json.RawMessage `json:"as_int"` // 2.4 and 2.5 write bools here
	Float  *Float           `json:"as_float"`
	String *string          `json:"as_string"`
	Bool   *bool            `json:"as_bool"`
}

// InputSpec says what a graph input is.
type InputSpec struct {
	UserInput *struct {
		Arg Argument `json:"arg"`
	} `json:"user_input"`
	Parameter *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"parameter_name"`
	} `json:"parameter"`
	Buffer *struct {
		Arg        TensorArgument `json:"arg"`
		Name       string         `json:"buffer_name"`
		Persistent *bool          `json:"persistent"`
	} `json:"buffer"`
	TensorConstant *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"tensor_constant_name"`
	} `json:"tensor_constant"`
	CustomObj *struct {
		Arg  CustomObjArgument `json:"arg"`
		Name string            `json:"custom_obj_name"`
	} `json:"custom_obj"`
	Token *struct {
		Arg TensorArgument `json:"arg"`
	} `json:"token"`
	Constant *struct {
		Name  string        `json:"name"`
		Value ConstantValue `json:"value"`
	} `json:"constant_input"`
}

// OutputSpec says what a graph output is.
type OutputSpec struct {
	UserOutput *struct {
		Arg Argument `json:"arg"`
	} `json:"user_output"`
	Loss *struct {
		Arg TensorArgument `json:"arg"`
	} `json:"loss_output"`
	Buffer *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"buffer_name"`
	} `json:"buffer_mutation"`
	GradParameter *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"parameter_name"`
	} `json:"gradient_to_parameter"`
	GradInput *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"user_input_name"`
	} `json:"gradient_to_user_input"`
	Input *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"user_input_name"`
	} `json:"user_input_mutation"`
	Token *struct {
		Arg TensorArgument `json:"arg"`
	} `json:"token"`
	Parameter *struct {
		Arg  TensorArgument `json:"arg"`
		Name string         `json:"parameter_name"`
	} `json:"parameter_mutation"`
}

// Signature is the graph signature; the maps are those of PyTorch 2.1.
type Signature struct {
	Inputs  []InputSpec  `json:"input_specs"`
	Outputs []OutputSpec `json:"output_specs"`

	OldParameters map[string]string `json:"inputs_to_parameters"`
	OldBuffers    map[string]string `json:"inputs_to_buffers"`
	OldInputs     []string          `json:"user_inputs"`
	OldOutputs    []string          `json:"user_outputs"`
	OldMutations  map[string]string `json:"buffers_to_mutate"`
}

// RangeConstraint bounds a symbol; nil is unbounded.
type RangeConstraint struct {
	Min *Bound `json:"min_val"`
	Max *Bound `json:"max_val"`
}

// ModuleCallSignature is the calling convention of a submodule or of the program.
type ModuleCallSignature struct {
	Inputs   []Argument `json:"inputs"`
	Outputs  []Argument `json:"outputs"`
	InSpec   string     `json:"in_spec"`
	OutSpec  string     `json:"out_spec"`
	ArgNames []string   `json:"forward_arg_names"`
}

// ModuleCallEntry is one submodule.
type ModuleCallEntry struct {
	FQN       string               `json:"fqn"`
	Signature *ModuleCallSignature `json:"signature"`
}

// NamedTupleDef lists the fields of a named tuple.
type NamedTupleDef struct {
	Fields []string `json:"field_names"`
}

// GraphModule is the graph with its signature.
type GraphModule struct {
	Graph       Graph                    `json:"graph"`
	Signature   Signature                `json:"signature"`
	ModuleCalls []ModuleCallEntry        `json:"module_call_graph"`
	Metadata    map[string]string        `json:"metadata"`
	NamedTuples map[string]NamedTupleDef `json:"treespec_namedtuple_fields"`
	CallSpec    *struct {                // 2.1 only
		InSpec  string `json:"in_spec"`
		OutSpec string `json:"out_spec"`
	} `json:"call_spec"`
}

// Version is a schema version; PyTorch 2.1 and 2.2 write a bare number.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// ExportedProgram is the root of a program's JSON.
type ExportedProgram struct {
	GraphModule  GraphModule          `json:"graph_module"`
	Opset        map[string]int       `json:"opset_version"`
	Ranges       Map[RangeConstraint] `json:"range_constraints"`
	Version      Version              `json:"schema_version"`
	Verifiers    []string             `json:"verifiers"`
	Dialect      string               `json:"dialect"` // 2.2 to 2.4
	TorchVersion string               `json:"torch_version"`
	Guards       []string             `json:"guards_code"`
}

// PayloadMeta says where a weight or constant lies.
type PayloadMeta struct {
	Path      string      `json:"path_name"`
	IsParam   bool        `json:"is_param"`
	UsePickle bool        `json:"use_pickle"`
	Meta      *TensorMeta `json:"tensor_meta"`
}

// PayloadConfig lists the weights or constants of a program.
type PayloadConfig struct {
	Config Map[PayloadMeta] `json:"config"`
}
