package cpu

import "math"

var (
	rowAdd     = binaryRow{"add", addGeneric, addF32AVX2, addF32AVX512}
	rowSub     = binaryRow{"sub", subGeneric, subF32AVX2, subF32AVX512}
	rowMul     = binaryRow{"mul", mulGeneric, mulF32AVX2, mulF32AVX512}
	rowDiv     = binaryRow{"div", divGeneric, divF32AVX2, divF32AVX512}
	rowMaximum = binaryRow{"maximum", maximumGeneric, maximumF32AVX2, maximumF32AVX512}
	rowMinimum = binaryRow{"minimum", minimumGeneric, minimumF32AVX2, minimumF32AVX512}
	rowPReLU   = binaryRow{"prelu", preluGeneric, preluF32AVX2, preluF32AVX512}

	rowAddScalar     = scalarRow{"add", addScalarGeneric, addScalarF32AVX2, addScalarF32AVX512}
	rowRSubScalar    = scalarRow{"rsub", rsubScalarGeneric, rsubScalarF32AVX2, rsubScalarF32AVX512}
	rowMulScalar     = scalarRow{"mul", mulScalarGeneric, mulScalarF32AVX2, mulScalarF32AVX512}
	rowDivScalar     = scalarRow{"div", divScalarGeneric, divScalarF32AVX2, divScalarF32AVX512}
	rowRDivScalar    = scalarRow{"rdiv", rdivScalarGeneric, rdivScalarF32AVX2, rdivScalarF32AVX512}
	rowMaximumScalar = scalarRow{"maximum", maximumScalarGeneric, maximumScalarF32AVX2, maximumScalarF32AVX512}
	rowMinimumScalar = scalarRow{"minimum", minimumScalarGeneric, minimumScalarF32AVX2, minimumScalarF32AVX512}
	rowLeakyReLU     = scalarRow{"leaky_relu", leakyReLUGeneric, leakyReLUF32AVX2, leakyReLUF32AVX512}

	rowNeg         = unaryRow{"neg", each(func(x float32) float32 { return -x }), negF32AVX2, negF32AVX512, 0}
	rowAbs         = unaryRow{"abs", each64(math.Abs), absF32AVX2, absF32AVX512, 0}
	rowCube        = unaryRow{"cube", each(func(x float32) float32 { return x * x * x }), cubeF32AVX2, cubeF32AVX512, 0}
	rowSqrt        = unaryRow{"sqrt", each64(math.Sqrt), sqrtF32AVX2, sqrtF32AVX512, 0}
	rowRsqrt       = unaryRow{"rsqrt", each(rsqrt), rsqrtF32AVX2, rsqrtF32AVX512, 0}
	rowReLU        = unaryRow{"relu", each(relu), reluF32AVX2, reluF32AVX512, 0}
	rowFloor       = unaryRow{"floor", each64(math.Floor), floorF32AVX2, floorF32AVX512, 0}
	rowCeil        = unaryRow{"ceil", each64(math.Ceil), ceilF32AVX2, ceilF32AVX512, 0}
	rowRound       = unaryRow{"round", each64(math.RoundToEven), roundF32AVX2, roundF32AVX512, 0}
	rowTrunc       = unaryRow{"trunc", each64(math.Trunc), truncF32AVX2, truncF32AVX512, 0}
	rowExp         = unaryRow{"exp", each64(math.Exp), expF32AVX2, expF32AVX512, 0}
	rowExpm1       = unaryRow{"expm1", each64(math.Expm1), expm1F32AVX2, expm1F32AVX512, 0}
	rowLog         = unaryRow{"log", each64(math.Log), logF32AVX2, logF32AVX512, 0}
	rowLog1p       = unaryRow{"log1p", each64(math.Log1p), log1pF32AVX2, log1pF32AVX512, 0}
	rowTanh        = unaryRow{"tanh", each64(math.Tanh), tanhF32AVX2, tanhF32AVX512, 0}
	rowSigmoid     = unaryRow{"sigmoid", each64(sigmoid64), sigmoidF32AVX2, sigmoidF32AVX512, 0}
	rowSiLU        = unaryRow{"silu", each64(func(x float64) float64 { return x / (1 + math.Exp(-x)) }), siluF32AVX2, siluF32AVX512, 0}
	rowErf         = unaryRow{"erf", each64(math.Erf), erfF32AVX2, erfF32AVX512, 0}
	rowGELU        = unaryRow{"gelu", each64(gelu64), geluF32AVX2, geluF32AVX512, 0}
	rowGELUTanh    = unaryRow{"gelu_tanh", each64(geluTanh64), geluTanhF32AVX2, geluTanhF32AVX512, 0}
	rowSin         = unaryRow{"sin", each64(math.Sin), sinF32AVX2, sinF32AVX512, 30000}
	rowCos         = unaryRow{"cos", each64(math.Cos), cosF32AVX2, cosF32AVX512, 30000}
	rowHardSwish   = unaryRow{"hardswish", each(func(x float32) float32 { return x * clamp6(x) / 6 }), hardSwishF32AVX2, hardSwishF32AVX512, 0}
	rowHardSigmoid = unaryRow{"hardsigmoid", each(func(x float32) float32 { return clamp6(x) / 6 }), hardSigmoidF32AVX2, hardSigmoidF32AVX512, 0}
	rowMish        = unaryRow{"mish", each64(mish64), mishF32AVX2, mishF32AVX512, 0}
)

// The tables that tests and benchmarks range over.
var (
	unaryRows = []*unaryRow{&rowNeg, &rowAbs, &rowCube, &rowSqrt, &rowRsqrt, &rowReLU, &rowFloor, &rowCeil, &rowRound, &rowTrunc, &rowExp, &rowExpm1,
		&rowLog, &rowLog1p, &rowTanh, &rowSigmoid, &rowSiLU, &rowErf, &rowGELU, &rowGELUTanh, &rowSin, &rowCos, &rowHardSwish, &rowHardSigmoid, &rowMish}
	binaryRows = []*binaryRow{&rowAdd, &rowSub, &rowMul, &rowDiv, &rowMaximum, &rowMinimum, &rowPReLU}
	scalarRows = []*scalarRow{&rowAddScalar, &rowRSubScalar, &rowMulScalar, &rowDivScalar, &rowRDivScalar, &rowMaximumScalar, &rowMinimumScalar, &rowLeakyReLU}
)
