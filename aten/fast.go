package aten

import (
	"math"

	"github.com/pt2go/pt2/kernels/cpu"
)

// vectorF32 are the functions that package cpu computes over whole blocks.
var vectorF32 = map[string]func(d, x []float32){
	"exp": cpu.ExpF32, "expm1": cpu.Expm1F32, "log": cpu.LogF32, "log1p": cpu.Log1pF32, "sqrt": cpu.SqrtF32, "rsqrt": cpu.RsqrtF32,
	"sin": cpu.SinF32, "cos": cpu.CosF32, "tanh": cpu.TanhF32, "erf": cpu.ErfF32, "sigmoid": cpu.SigmoidF32,
	"reciprocal": cpu.ReciprocalF32, "silu": cpu.SiLUF32, "mish": cpu.MishF32, "hardswish": cpu.HardSwishF32,
	"hardsigmoid": cpu.HardSigmoidF32, "relu": cpu.ReLUF32, "sinc": sincF32,
}

// fastF32 gives the SIMD form of a float32 function over blocks, nil if there is none.
func fastF32(name string) func(d, x []float32) { return vectorF32[name] }

// sincF32 multiplies by pi in float32, as PyTorch does: for large x that product decides.
func sincF32(d, x []float32) {
	for i, v := range x {
		if d[i] = 1; v != 0 {
			p := math.Pi * v
			d[i] = float32(math.Sin(float64(p))) / p
		}
	}
}
