package schema

// The tables of the schema: for each struct and union the fields in the order of the text, with their numbers.

var (
	scalarTypeC = enumC("ScalarType", UnknownScalar, Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat,
		ComplexDouble, Bool, BFloat16, UInt16, Float8E4M3FN, Float8E5M2, Float8E4M3UZ, Float8E5M2UZ, Float8E8M0FNU, UInt32, UInt64)
	layoutC       = enumC("Layout", UnknownLayout, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc, MKLDNN, Strided)
	memoryFormatC = enumC("MemoryFormat", UnknownFormat, ContiguousFormat, ChannelsLast, ChannelsLast3d, PreserveFormat)
	kindC         = enumC("ArgumentKind", UnknownKind, Positional, Keyword)
	// argKindC reads null as UnknownKind and writes it back so: PyTorch treats both alike.
	argKindC = codec[ArgumentKind]{
		func(r *reader, v *ArgumentKind) {
			if !r.null() {
				kindC.dec(r, v)
			}
		},
		func(w *writer, v *ArgumentKind) {
			if *v == UnknownKind {
				w.raw("null")
			} else {
				kindC.enc(w, v)
			}
		},
	}
	// boundC is a bound of a range; old files may have an infinity for none.
	boundC = codec[*int64]{
		func(r *reader, v **int64) {
			if r.null() {
				return
			}
			switch c := r.next(); {
			case c == 'I' || c == 'N' || c == '"' || c == '-' && r.i+1 < len(r.b) && r.b[r.i+1] == 'I':
				r.float()
			default:
				n := r.int()
				*v = &n
			}
		},
		nullable(intC).enc,
	}
	// namesC is a list or null, which is nil.
	namesC = codec[[]string]{
		func(r *reader, v *[]string) {
			if !r.null() {
				listOf(stringC).dec(r, v)
			}
		},
		func(w *writer, v *[]string) {
			if *v == nil {
				w.raw("null")
			} else {
				listOf(stringC).enc(w, v)
			}
		},
	}
	stringsC = listOf(stringC)
	intsC    = listOf(intC)
)

var deviceC = structOf[Device]("Device",
	need(10, "type", func(s *Device) *string { return &s.Type }, stringC),
	opt(20, "index", func(s *Device) **int64 { return &s.Index }, nullable(intC)),
)

var symExprHintC = unionOf("SymExprHint",
	hintOf(10, "as_int", intC),
	hintOf(20, "as_bool", boolC),
	hintOf(30, "as_float", floatC),
)

// hintOf is a variant of a union that is any Go value.
func hintOf[T any](num int, tag string, c codec[T]) variant[any] {
	return tagged(num, tag, c, func(u *any, v T) { *u = v }, func(u *any) (T, bool) { v, ok := (*u).(T); return v, ok })
}

var optHintC = codec[any]{
	func(r *reader, v *any) {
		if !r.null() {
			symExprHintC.dec(r, v)
		}
	},
	func(w *writer, v *any) {
		if *v == nil {
			w.raw("null")
		} else {
			symExprHintC.enc(w, v)
		}
	},
}

var symExprC = structOf[SymExpr]("SymExpr",
	need(10, "expr_str", func(s *SymExpr) *string { return &s.Expr }, stringC),
	opt(20, "hint", func(s *SymExpr) *any { return &s.Hint }, optHintC),
)

var symIntC = unionOf("SymInt",
	tagged(10, "as_expr", symExprC, func(u *SymInt, v SymExpr) { u.Expr = &v }, func(u *SymInt) (v SymExpr, ok bool) {
		if u.Expr == nil {
			return v, false
		}
		return *u.Expr, true
	}),
	tagged(20, "as_int", intC, func(u *SymInt, v int64) { u.Int = v }, func(u *SymInt) (int64, bool) { return u.Int, u.Expr == nil }),
)

var symIntArgumentC = unionOf("SymIntArgument",
	tagged(10, "as_name", wordC, func(u *SymIntArgument, v string) { u.Name = v }, func(u *SymIntArgument) (string, bool) { return u.Name, u.Name != "" }),
	tagged(20, "as_int", intC, func(u *SymIntArgument, v int64) { u.Int = v }, func(u *SymIntArgument) (int64, bool) { return u.Int, u.Name == "" }),
)

var symFloatC = unionOf("SymFloat",
	tagged(10, "as_expr", symExprC, func(u *SymFloat, v SymExpr) { u.Expr = &v }, func(u *SymFloat) (v SymExpr, ok bool) {
		if u.Expr == nil {
			return v, false
		}
		return *u.Expr, true
	}),
	tagged(20, "as_float", floatC, func(u *SymFloat, v float64) { u.Float = v }, func(u *SymFloat) (float64, bool) { return u.Float, u.Expr == nil }),
)

var symFloatArgumentC = unionOf("SymFloatArgument",
	tagged(10, "as_name", wordC, func(u *SymFloatArgument, v string) { u.Name = v }, func(u *SymFloatArgument) (string, bool) { return u.Name, u.Name != "" }),
	tagged(20, "as_float", floatC, func(u *SymFloatArgument, v float64) { u.Float = v }, func(u *SymFloatArgument) (float64, bool) { return u.Float, u.Name == "" }),
)

var symBoolC = unionOf("SymBool",
	tagged(10, "as_expr", symExprC, func(u *SymBool, v SymExpr) { u.Expr = &v }, func(u *SymBool) (v SymExpr, ok bool) {
		if u.Expr == nil {
			return v, false
		}
		return *u.Expr, true
	}),
	tagged(20, "as_bool", boolC, func(u *SymBool, v bool) { u.Bool = v }, func(u *SymBool) (bool, bool) { return u.Bool, u.Expr == nil }),
)

var symBoolArgumentC = unionOf("SymBoolArgument",
	tagged(10, "as_name", wordC, func(u *SymBoolArgument, v string) { u.Name = v }, func(u *SymBoolArgument) (string, bool) { return u.Name, u.Name != "" }),
	tagged(20, "as_bool", boolC, func(u *SymBoolArgument, v bool) { u.Bool = v }, func(u *SymBoolArgument) (bool, bool) { return u.Bool, u.Name == "" }),
)

// wordC is a string that may not be empty.
var wordC = codec[string]{
	func(r *reader, v *string) {
		if *v = r.str(); *v == "" {
			r.fail("an empty name")
		}
	},
	stringC.enc,
}

var tensorMetaC = structOf[TensorMeta]("TensorMeta",
	need(10, "dtype", func(s *TensorMeta) *ScalarType { return &s.DType }, scalarTypeC),
	need(20, "sizes", func(s *TensorMeta) *[]SymInt { return &s.Sizes }, listOf(symIntC)),
	need(30, "requires_grad", func(s *TensorMeta) *bool { return &s.RequiresGrad }, boolC),
	need(40, "device", func(s *TensorMeta) *Device { return &s.Device }, deviceC),
	need(50, "strides", func(s *TensorMeta) *[]SymInt { return &s.Strides }, listOf(symIntC)),
	need(60, "storage_offset", func(s *TensorMeta) *SymInt { return &s.StorageOffset }, symIntC),
	need(70, "layout", func(s *TensorMeta) *Layout { return &s.Layout }, layoutC),
)

var tensorArgumentC = structOf[TensorArgument]("TensorArgument",
	need(10, "name", func(s *TensorArgument) *string { return &s.Name }, stringC),
)

var tokenArgumentC = structOf[TokenArgument]("TokenArgument",
	need(10, "name", func(s *TokenArgument) *string { return &s.Name }, stringC),
)

var optionalTensorArgumentC = unionOf("OptionalTensorArgument",
	tagged(20, "as_tensor", tensorArgumentC, func(u *OptionalTensorArgument, v TensorArgument) { u.Tensor = &v }, func(u *OptionalTensorArgument) (v TensorArgument, ok bool) {
		if u.Tensor == nil {
			return v, false
		}
		return *u.Tensor, true
	}),
	tagged(10, "as_none", noneC, func(*OptionalTensorArgument, bool) {}, func(u *OptionalTensorArgument) (bool, bool) { return true, u.Tensor == nil }),
)

var graphC codec[Graph] // made by init: the schema is recursive

var argumentC codec[Argument]

var graphArgumentC = structOf[GraphArgument]("GraphArgument",
	need(10, "name", func(s *GraphArgument) *string { return &s.Name }, stringC),
	need(20, "graph", func(s *GraphArgument) *Graph { return &s.Graph }, refTo(&graphC)),
)

var customObjArgumentC = structOf[CustomObjArgument]("CustomObjArgument",
	need(10, "name", func(s *CustomObjArgument) *string { return &s.Name }, stringC),
	need(20, "class_fqn", func(s *CustomObjArgument) *string { return &s.ClassFQN }, stringC),
)

var complexValueC = structOf[ComplexValue]("ComplexValue",
	need(10, "real", func(s *ComplexValue) *float64 { return &s.Real }, floatC),
	need(20, "imag", func(s *ComplexValue) *float64 { return &s.Imag }, floatC),
)

func init() {
	argumentC = unionOf("Argument",
		argOf(10, AsNone, noneC),
		argOf(20, AsTensor, tensorArgumentC),
		argOf(30, AsTensors, listOf(tensorArgumentC)),
		argOf(50, AsInt, intC),
		argOf(70, AsInts, intsC),
		argOf(80, AsFloat, floatC),
		argOf(90, AsFloats, listOf(floatC)),
		argOf(100, AsString, stringC),
		argOf(101, AsStrings, stringsC),
		argOf(110, AsSymInt, symIntArgumentC),
		argOf(120, AsSymInts, listOf(symIntArgumentC)),
		argOf(130, AsScalarType, scalarTypeC),
		argOf(140, AsMemoryFormat, memoryFormatC),
		argOf(150, AsLayout, layoutC),
		argOf(160, AsDevice, deviceC),
		argOf(170, AsBool, boolC),
		argOf(180, AsBools, listOf(boolC)),
		argOf(182, AsSymBool, symBoolArgumentC),
		argOf(184, AsSymBools, listOf(symBoolArgumentC)),
		argOf(200, AsGraph, nonNil(graphArgumentC)),
		argOf(190, AsOptionalTensors, listOf(optionalTensorArgumentC)),
		argOf(210, AsCustomObj, customObjArgumentC),
		argOf(220, AsOperator, stringC),
		argOf(230, AsSymFloat, symFloatArgumentC),
		argOf(240, AsSymFloats, listOf(symFloatArgumentC)),
		argOf(250, AsOptionalTensor, optionalTensorArgumentC),
		argOf(260, AsComplex, complexValueC),
		argOf(270, AsNestedTensors, listOf(listOf(tensorArgumentC))),
		argOf(280, AsIntLists, listOf(intsC)),
		argOf(290, AsStringToArgument, mapOf(refTo(&argumentC))),
		argOf(300, AsFloatLists, listOf(listOf(floatC))),
	)
	initGraph()
}

// argOf is a tag of Argument. A value that its tag does not allow makes no text.
func argOf[T any](num int, tag ArgTag, c codec[T]) variant[Argument] {
	return tagged(num, string(tag), c, func(u *Argument, v T) { *u = Argument{tag, v} }, func(u *Argument) (v T, ok bool) {
		if u.Tag == tag {
			v, ok = u.Value.(T)
		}
		return v, ok
	})
}

// nonNil is a value kept behind a pointer.
func nonNil[T any](c codec[T]) codec[*T] {
	return codec[*T]{
		func(r *reader, v **T) {
			*v = new(T)
			c.dec(r, *v)
		},
		nullable(c).enc,
	}
}

var namedArgumentC = structOf[NamedArgument]("NamedArgument",
	need(10, "name", func(s *NamedArgument) *string { return &s.Name }, stringC),
	need(20, "arg", func(s *NamedArgument) *Argument { return &s.Arg }, refTo(&argumentC)),
	opt(30, "kind", func(s *NamedArgument) *ArgumentKind { return &s.Kind }, argKindC),
)

var nodeC = structOf[Node]("Node",
	need(10, "target", func(s *Node) *string { return &s.Target }, stringC),
	need(20, "inputs", func(s *Node) *[]NamedArgument { return &s.Inputs }, listOf(namedArgumentC)),
	need(30, "outputs", func(s *Node) *[]Argument { return &s.Outputs }, listOf(refTo(&argumentC))),
	need(40, "metadata", func(s *Node) *Map[string] { return &s.Metadata }, mapOf(stringC)),
	opt(50, "is_hop_single_tensor_return", func(s *Node) **bool { return &s.IsHOPSingleTensorReturn }, nullable(boolC)),
	opt(60, "name", func(s *Node) *string { return &s.Name }, nameC),
)

func initGraph() {
	graphC = structOf[Graph]("Graph",
		need(10, "inputs", func(s *Graph) *[]Argument { return &s.Inputs }, listOf(refTo(&argumentC))),
		need(20, "outputs", func(s *Graph) *[]Argument { return &s.Outputs }, listOf(refTo(&argumentC))),
		need(30, "nodes", func(s *Graph) *[]Node { return &s.Nodes }, listOf(nodeC)),
		need(40, "tensor_values", func(s *Graph) *Map[TensorMeta] { return &s.TensorValues }, mapOf(tensorMetaC)),
		need(50, "sym_int_values", func(s *Graph) *Map[SymInt] { return &s.SymIntValues }, mapOf(symIntC)),
		need(60, "sym_bool_values", func(s *Graph) *Map[SymBool] { return &s.SymBoolValues }, mapOf(symBoolC)),
		opt(70, "is_single_tensor_return", func(s *Graph) *bool { return &s.IsSingleTensorReturn }, boolC),
		opt(80, "custom_obj_values", func(s *Graph) *Map[CustomObjArgument] { return &s.CustomObjValues }, mapOf(customObjArgumentC)),
		opt(90, "sym_float_values", func(s *Graph) *Map[SymFloat] { return &s.SymFloatValues }, mapOf(symFloatC)),
	)
}

var userInputSpecC = structOf[UserInputSpec]("UserInputSpec",
	need(10, "arg", func(s *UserInputSpec) *Argument { return &s.Arg }, refTo(&argumentC)),
)

var constantValueC = unionOf("ConstantValue",
	tagged(10, "as_none", noneC, func(u *ConstantValue, _ bool) { u.Value = nil }, func(u *ConstantValue) (bool, bool) { return true, u.Value == nil }),
	constantOf(20, "as_int", intC),
	constantOf(30, "as_float", floatC),
	constantOf(40, "as_string", stringC),
	constantOf(50, "as_bool", boolC),
)

func constantOf[T any](num int, tag string, c codec[T]) variant[ConstantValue] {
	return tagged(num, tag, c, func(u *ConstantValue, v T) { u.Value = v }, func(u *ConstantValue) (T, bool) { v, ok := u.Value.(T); return v, ok })
}

var inputToConstantInputSpecC = structOf[InputToConstantInputSpec]("InputToConstantInputSpec",
	need(10, "name", func(s *InputToConstantInputSpec) *string { return &s.Name }, stringC),
	need(20, "value", func(s *InputToConstantInputSpec) *ConstantValue { return &s.Value }, constantValueC),
)

var inputToParameterSpecC = structOf[InputToParameterSpec]("InputToParameterSpec",
	need(10, "arg", func(s *InputToParameterSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "parameter_name", func(s *InputToParameterSpec) *string { return &s.ParameterName }, stringC),
)

var inputToBufferSpecC = structOf[InputToBufferSpec]("InputToBufferSpec",
	need(10, "arg", func(s *InputToBufferSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "buffer_name", func(s *InputToBufferSpec) *string { return &s.BufferName }, stringC),
	need(30, "persistent", func(s *InputToBufferSpec) *bool { return &s.Persistent }, boolC),
)

var inputToTensorConstantSpecC = structOf[InputToTensorConstantSpec]("InputToTensorConstantSpec",
	need(10, "arg", func(s *InputToTensorConstantSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "tensor_constant_name", func(s *InputToTensorConstantSpec) *string { return &s.TensorConstantName }, stringC),
)

var inputToCustomObjSpecC = structOf[InputToCustomObjSpec]("InputToCustomObjSpec",
	need(10, "arg", func(s *InputToCustomObjSpec) *CustomObjArgument { return &s.Arg }, customObjArgumentC),
	need(20, "custom_obj_name", func(s *InputToCustomObjSpec) *string { return &s.CustomObjName }, stringC),
)

var inputTokenSpecC = structOf[InputTokenSpec]("InputTokenSpec",
	need(10, "arg", func(s *InputTokenSpec) *TokenArgument { return &s.Arg }, tokenArgumentC),
)

var inputSpecC = unionOf("InputSpec",
	tagged(10, "user_input", nonNil(userInputSpecC), func(u *InputSpec, v *UserInputSpec) { u.Value = v }, func(u *InputSpec) (*UserInputSpec, bool) { v, ok := u.Value.(*UserInputSpec); return v, ok && v != nil }),
	tagged(20, "parameter", nonNil(inputToParameterSpecC), func(u *InputSpec, v *InputToParameterSpec) { u.Value = v }, func(u *InputSpec) (*InputToParameterSpec, bool) {
		v, ok := u.Value.(*InputToParameterSpec)
		return v, ok && v != nil
	}),
	tagged(30, "buffer", nonNil(inputToBufferSpecC), func(u *InputSpec, v *InputToBufferSpec) { u.Value = v }, func(u *InputSpec) (*InputToBufferSpec, bool) {
		v, ok := u.Value.(*InputToBufferSpec)
		return v, ok && v != nil
	}),
	tagged(40, "tensor_constant", nonNil(inputToTensorConstantSpecC), func(u *InputSpec, v *InputToTensorConstantSpec) { u.Value = v }, func(u *InputSpec) (*InputToTensorConstantSpec, bool) {
		v, ok := u.Value.(*InputToTensorConstantSpec)
		return v, ok && v != nil
	}),
	tagged(50, "custom_obj", nonNil(inputToCustomObjSpecC), func(u *InputSpec, v *InputToCustomObjSpec) { u.Value = v }, func(u *InputSpec) (*InputToCustomObjSpec, bool) {
		v, ok := u.Value.(*InputToCustomObjSpec)
		return v, ok && v != nil
	}),
	tagged(70, "token", nonNil(inputTokenSpecC), func(u *InputSpec, v *InputTokenSpec) { u.Value = v }, func(u *InputSpec) (*InputTokenSpec, bool) {
		v, ok := u.Value.(*InputTokenSpec)
		return v, ok && v != nil
	}),
	tagged(60, "constant_input", nonNil(inputToConstantInputSpecC), func(u *InputSpec, v *InputToConstantInputSpec) { u.Value = v }, func(u *InputSpec) (*InputToConstantInputSpec, bool) {
		v, ok := u.Value.(*InputToConstantInputSpec)
		return v, ok && v != nil
	}),
)

var userOutputSpecC = structOf[UserOutputSpec]("UserOutputSpec",
	need(10, "arg", func(s *UserOutputSpec) *Argument { return &s.Arg }, refTo(&argumentC)),
)

var lossOutputSpecC = structOf[LossOutputSpec]("LossOutputSpec",
	need(10, "arg", func(s *LossOutputSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
)

var bufferMutationSpecC = structOf[BufferMutationSpec]("BufferMutationSpec",
	need(10, "arg", func(s *BufferMutationSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "buffer_name", func(s *BufferMutationSpec) *string { return &s.BufferName }, stringC),
)

var parameterMutationSpecC = structOf[ParameterMutationSpec]("ParameterMutationSpec",
	need(10, "arg", func(s *ParameterMutationSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "parameter_name", func(s *ParameterMutationSpec) *string { return &s.ParameterName }, stringC),
)

var gradientToParameterSpecC = structOf[GradientToParameterSpec]("GradientToParameterSpec",
	need(10, "arg", func(s *GradientToParameterSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "parameter_name", func(s *GradientToParameterSpec) *string { return &s.ParameterName }, stringC),
)

var gradientToUserInputSpecC = structOf[GradientToUserInputSpec]("GradientToUserInputSpec",
	need(10, "arg", func(s *GradientToUserInputSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "user_input_name", func(s *GradientToUserInputSpec) *string { return &s.UserInputName }, stringC),
)

var userInputMutationSpecC = structOf[UserInputMutationSpec]("UserInputMutationSpec",
	need(10, "arg", func(s *UserInputMutationSpec) *TensorArgument { return &s.Arg }, tensorArgumentC),
	need(20, "user_input_name", func(s *UserInputMutationSpec) *string { return &s.UserInputName }, stringC),
)

var outputTokenSpecC = structOf[OutputTokenSpec]("OutputTokenSpec",
	need(10, "arg", func(s *OutputTokenSpec) *TokenArgument { return &s.Arg }, tokenArgumentC),
)

var outputSpecC = unionOf("OutputSpec",
	tagged(10, "user_output", nonNil(userOutputSpecC), func(u *OutputSpec, v *UserOutputSpec) { u.Value = v }, func(u *OutputSpec) (*UserOutputSpec, bool) {
		v, ok := u.Value.(*UserOutputSpec)
		return v, ok && v != nil
	}),
	tagged(20, "loss_output", nonNil(lossOutputSpecC), func(u *OutputSpec, v *LossOutputSpec) { u.Value = v }, func(u *OutputSpec) (*LossOutputSpec, bool) {
		v, ok := u.Value.(*LossOutputSpec)
		return v, ok && v != nil
	}),
	tagged(30, "buffer_mutation", nonNil(bufferMutationSpecC), func(u *OutputSpec, v *BufferMutationSpec) { u.Value = v }, func(u *OutputSpec) (*BufferMutationSpec, bool) {
		v, ok := u.Value.(*BufferMutationSpec)
		return v, ok && v != nil
	}),
	tagged(40, "gradient_to_parameter", nonNil(gradientToParameterSpecC), func(u *OutputSpec, v *GradientToParameterSpec) { u.Value = v }, func(u *OutputSpec) (*GradientToParameterSpec, bool) {
		v, ok := u.Value.(*GradientToParameterSpec)
		return v, ok && v != nil
	}),
	tagged(50, "gradient_to_user_input", nonNil(gradientToUserInputSpecC), func(u *OutputSpec, v *GradientToUserInputSpec) { u.Value = v }, func(u *OutputSpec) (*GradientToUserInputSpec, bool) {
		v, ok := u.Value.(*GradientToUserInputSpec)
		return v, ok && v != nil
	}),
	tagged(60, "user_input_mutation", nonNil(userInputMutationSpecC), func(u *OutputSpec, v *UserInputMutationSpec) { u.Value = v }, func(u *OutputSpec) (*UserInputMutationSpec, bool) {
		v, ok := u.Value.(*UserInputMutationSpec)
		return v, ok && v != nil
	}),
	tagged(70, "token", nonNil(outputTokenSpecC), func(u *OutputSpec, v *OutputTokenSpec) { u.Value = v }, func(u *OutputSpec) (*OutputTokenSpec, bool) {
		v, ok := u.Value.(*OutputTokenSpec)
		return v, ok && v != nil
	}),
	tagged(80, "parameter_mutation", nonNil(parameterMutationSpecC), func(u *OutputSpec, v *ParameterMutationSpec) { u.Value = v }, func(u *OutputSpec) (*ParameterMutationSpec, bool) {
		v, ok := u.Value.(*ParameterMutationSpec)
		return v, ok && v != nil
	}),
)

var graphSignatureC = structOf[GraphSignature]("GraphSignature",
	need(10, "input_specs", func(s *GraphSignature) *[]InputSpec { return &s.InputSpecs }, listOf(inputSpecC)),
	need(20, "output_specs", func(s *GraphSignature) *[]OutputSpec { return &s.OutputSpecs }, listOf(outputSpecC)),
)

var rangeConstraintC = structOf[RangeConstraint]("RangeConstraint",
	need(10, "min_val", func(s *RangeConstraint) **int64 { return &s.Min }, boundC),
	need(20, "max_val", func(s *RangeConstraint) **int64 { return &s.Max }, boundC),
)

var moduleCallSignatureC = structOf[ModuleCallSignature]("ModuleCallSignature",
	need(10, "inputs", func(s *ModuleCallSignature) *[]Argument { return &s.Inputs }, listOf(refTo(&argumentC))),
	need(20, "outputs", func(s *ModuleCallSignature) *[]Argument { return &s.Outputs }, listOf(refTo(&argumentC))),
	need(30, "in_spec", func(s *ModuleCallSignature) *string { return &s.InSpec }, stringC),
	need(40, "out_spec", func(s *ModuleCallSignature) *string { return &s.OutSpec }, stringC),
	opt(50, "forward_arg_names", func(s *ModuleCallSignature) *[]string { return &s.ForwardArgNames }, namesC),
)

var moduleCallEntryC = structOf[ModuleCallEntry]("ModuleCallEntry",
	need(10, "fqn", func(s *ModuleCallEntry) *string { return &s.FQN }, stringC),
	opt(30, "signature", func(s *ModuleCallEntry) **ModuleCallSignature { return &s.Signature }, nullable(moduleCallSignatureC)),
)

var namedTupleDefC = structOf[NamedTupleDef]("NamedTupleDef",
	need(10, "field_names", func(s *NamedTupleDef) *[]string { return &s.FieldNames }, stringsC),
)

var graphModuleC = structOf[GraphModule]("GraphModule",
	need(10, "graph", func(s *GraphModule) *Graph { return &s.Graph }, refTo(&graphC)),
	need(50, "signature", func(s *GraphModule) *GraphSignature { return &s.Signature }, graphSignatureC),
	need(60, "module_call_graph", func(s *GraphModule) *[]ModuleCallEntry { return &s.ModuleCallGraph }, listOf(moduleCallEntryC)),
	opt(40, "metadata", func(s *GraphModule) *Map[string] { return &s.Metadata }, mapOf(stringC)),
	opt(70, "treespec_namedtuple_fields", func(s *GraphModule) *Map[NamedTupleDef] { return &s.TreespecNamedtupleFields }, mapOf(namedTupleDefC)),
)

var schemaVersionC = structOf[SchemaVersion]("SchemaVersion",
	need(10, "major", func(s *SchemaVersion) *int64 { return &s.Major }, intC),
	need(20, "minor", func(s *SchemaVersion) *int64 { return &s.Minor }, intC),
)

var exportedProgramC = structOf[ExportedProgram]("ExportedProgram",
	need(10, "graph_module", func(s *ExportedProgram) *GraphModule { return &s.GraphModule }, graphModuleC),
	need(20, "opset_version", func(s *ExportedProgram) *Map[int64] { return &s.OpsetVersion }, mapOf(intC)),
	need(30, "range_constraints", func(s *ExportedProgram) *Map[RangeConstraint] { return &s.RangeConstraints }, mapOf(rangeConstraintC)),
	need(60, "schema_version", func(s *ExportedProgram) *SchemaVersion { return &s.SchemaVersion }, schemaVersionC),
	opt(70, "verifiers", func(s *ExportedProgram) *[]string { return &s.Verifiers }, stringsC),
	optDef(80, "torch_version", func(s *ExportedProgram) *string { return &s.TorchVersion }, stringC, "<=2.4"),
	opt(90, "guards_code", func(s *ExportedProgram) *[]string { return &s.GuardsCode }, stringsC),
)

var payloadMetaC = structOf[PayloadMeta]("PayloadMeta",
	need(10, "path_name", func(s *PayloadMeta) *string { return &s.PathName }, stringC),
	need(20, "is_param", func(s *PayloadMeta) *bool { return &s.IsParam }, boolC),
	need(30, "use_pickle", func(s *PayloadMeta) *bool { return &s.UsePickle }, boolC),
	need(40, "tensor_meta", func(s *PayloadMeta) **TensorMeta { return &s.TensorMeta }, nullable(tensorMetaC)),
)

var payloadConfigC = structOf[PayloadConfig]("PayloadConfig",
	need(10, "config", func(s *PayloadConfig) *Map[PayloadMeta] { return &s.Config }, mapOf(payloadMetaC)),
)

var aotInductorDataC = structOf[AOTInductorModelPickleData]("AOTInductorModelPickleData",
	need(1, "library_basename", func(s *AOTInductorModelPickleData) *string { return &s.LibraryBasename }, stringC),
	need(2, "input_names", func(s *AOTInductorModelPickleData) *[]string { return &s.InputNames }, stringsC),
	need(3, "output_names", func(s *AOTInductorModelPickleData) *[]string { return &s.OutputNames }, stringsC),
	opt(4, "floating_point_input_dtype", func(s *AOTInductorModelPickleData) **int64 { return &s.FloatingPointInputDtype }, nullable(intC)),
	opt(5, "floating_point_output_dtype", func(s *AOTInductorModelPickleData) **int64 { return &s.FloatingPointOutputDtype }, nullable(intC)),
	opt(6, "aot_inductor_model_is_cpu", func(s *AOTInductorModelPickleData) **bool { return &s.AOTInductorModelIsCPU }, nullable(boolC)),
)

var externKernelNodeC = structOf[ExternKernelNode]("ExternKernelNode",
	need(10, "name", func(s *ExternKernelNode) *string { return &s.Name }, stringC),
	need(20, "node", func(s *ExternKernelNode) *Node { return &s.Node }, nodeC),
)

var externKernelNodesC = structOf[ExternKernelNodes]("ExternKernelNodes",
	need(10, "nodes", func(s *ExternKernelNodes) *[]ExternKernelNode { return &s.Nodes }, listOf(externKernelNodeC)),
)
