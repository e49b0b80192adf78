package cpu

// ActKind names an activation that a product or convolution applies to its results.
type ActKind uint8

// The activations, by PyTorch's names. Each is the function of this package of the same name.
const (
	ActNone             ActKind = iota
	ActReLU                     // NaN stays
	ActClamp                    // between Lo and Hi: relu6, hardtanh, clamp; NaN stays
	ActLeakyReLU                // x where x > 0, else x*Lo
	ActELU                      // x where x > 0, else Lo*(e^x - 1)
	ActHardSwish                //
	ActHardSigmoid              //
	ActSigmoid                  //
	ActSiLU                     //
	ActTanh                     //
	ActGELU                     // with erf
	ActGELUOneDNN               //
	ActGELUHalfLast             //
	ActGELUTanh                 // the approximation by tanh
	ActGELUTanhHalfLast         //
	ActMish                     //
)

// Activation is an activation with its parameters.
type Activation struct {
	Kind   ActKind
	Lo, Hi float32 // of ActClamp; Lo is the slope of ActLeakyReLU and the alpha of ActELU
}

var actFuncs = [...]unarySlice{
	ActReLU: ReLUF32, ActHardSwish: HardSwishF32, ActHardSigmoid: HardSigmoidF32, ActSigmoid: SigmoidF32, ActSiLU: SiLUF32,
	ActTanh: TanhF32, ActMish: MishF32,
	ActGELU: GELUF32, ActGELUOneDNN: GELUOneDNNF32, ActGELUHalfLast: GELUHalfLastF32,
	ActGELUTanh: GELUTanhF32, ActGELUTanhHalfLast: GELUTanhHalfLastF32,
}

// Apply is d = act(x). d may be x.
func (a Activation) Apply(d, x []float32) {
	switch a.Kind {
	case ActNone:
		if len(d) > 0 && &d[0] != &x[0] {
			copy(d, x)
		}
	case ActClamp:
		ClampF32(d, x, a.Lo, a.Hi)
	case ActLeakyReLU:
		LeakyReLUF32(d, x, a.Lo)
	case ActELU:
		ELUF32(d, x, a.Lo, 1, 1)
	default:
		actFuncs[a.Kind](d, x)
	}
}
