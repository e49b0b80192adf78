package aten

import (
	"github.com/pt2go/pt2/symbolic"
)

// legacyConvOps are the convolutions that older graphs name by their algorithm.
var legacyConvOps = []Op{
	legacyConv("thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0]) -> Tensor", 2, -1),
	legacyConv("_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding) -> Tensor", 2, -1),
	legacyConv("slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0]) -> Tensor", 3, -1),
	legacyConv("slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding) -> Tensor", 3, -1),
	legacyConv("slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor", 2, 6),
	legacyConv("slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor", 3, 6),
	legacyTransposed("slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor"),
	legacyTransposed("slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor"),
}

// legacyConv is a convolution of n dimensions whose dilation is argument dil, 1 if that is negative.
func legacyConv(schema string, n, dil int) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		dilation := []symbolic.Int{symbolic.N(1), symbolic.N(1), symbolic.N(1)}[:n]
		if dil >= 0 {
			dilation = a.Ints(dil)
		}
		none := []symbolic.Int{symbolic.N(0), symbolic.N(0), symbolic.N(0)}[:n]
		return One(b.Call("convolution", a.Tensor(0), a.Tensor(1), a.V[3], a.Ints(4), a.Ints(5), dilation, false, none, 1))
	}}
}

func legacyTransposed(schema string) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("convolution", a.Tensor(0), a.Tensor(1), a.V[3], a.Ints(4), a.Ints(5), a.Ints(7), true, a.Ints(6), 1))
	}}
}
