package aten

import (
	"slices"
	"strings"

	"github.com/pt2go/pt2/tensor"
)

// resampleBackwardOps are the gradients of interpolations: every weight carries back what it took.
var resampleBackwardOps = []Op{
	upsampleBackward("upsample_nearest1d", 1, nearestTaps(0)), upsampleBackward("upsample_nearest2d", 2, nearestTaps(0)), upsampleBackward("upsample_nearest3d", 3, nearestTaps(0)),
	upsampleBackward("_upsample_nearest_exact1d", 1, nearestTaps(0.5)), upsampleBackward("_upsample_nearest_exact2d", 2, nearestTaps(0.5)), upsampleBackward("_upsample_nearest_exact3d", 3, nearestTaps(0.5)),
	upsampleBackward("upsample_linear1d", 1, linearTaps), upsampleBackward("upsample_bilinear2d", 2, linearTaps), upsampleBackward("upsample_trilinear3d", 3, linearTaps),
	upsampleBackward("upsample_bicubic2d", 2, cubicTaps),
}

func upsampleBackward(name string, n int, f taps) Op {
	scales := []string{"", "float? scales=None", "float? scales_h=None, float? scales_w=None", "float? scales_d=None, float? scales_h=None, float? scales_w=None"}[n]
	d := string(rune('0' + n))
	e := string(rune('2' + n))
	align, first := "bool align_corners, ", 4
	if strings.Contains(name, "nearest") {
		align, first = "", 3
	}
	return Op{
		Schema: name + "_backward(Tensor grad_output, SymInt[" + d + "] output_size, SymInt[" + e + "] input_size, " + align + scales + ") -> Tensor",
		Shape: func(a *Args) []Meta {
			g, size, in := a.Tensor(0), a.Ints(1), a.Ints(2)
			Check(len(size) == n, "It is expected output_size equals to %d, but got size %d", n, len(size))
			Check(len(in) == n+2, "It is expected input_size equals to %d, but got size %d", n+2, len(in))
			want := append(slices.Clone(in[:2]), size...)
			Check(g.Dim() == n+2, "Expected grad_output to be a tensor of dimension %d but got: dimension %d", n+2, g.Dim())
			for i, s := range want {
				Check(g.Sizes[i].Eq(s), "Expected grad_output to have the same shape as output; output.size(%d) = %v but got grad_output.size(%d) = %v", i, s, i, g.Sizes[i])
			}
			mustFloat(name+"_backward", g.DType)
			return []Meta{keepFormat(g, g.DType, slices.Clone(in))}
		},
		CPU: func(k *Kernel) {
			ax := make([]*axis, n)
			for i := range ax {
				scale := 0.0
				if v, ok := k.OptFloat(first + i); ok && v > 0 {
					scale = 1 / v
				}
				ax[i] = newAxis(k.Ints(2)[2+i].Int64(), k.Ints(1)[i].Int64(), scale, first == 4 && k.Bool(3))
				ax[i].single = k.Out[0].DType() != tensor.Float64
			}
			if k.Out[0].DType() == tensor.Float64 {
				resampleBack[float64](k, ax, f)
				return
			}
			resampleBack[float32](k, ax, f)
		},
	}
}

// resampleBack spreads the gradient over the inputs, one dimension after the other.
func resampleBack[T float32 | float64](k *Kernel, ax []*axis, f taps) {
	if k.Out[0].Numel() == 0 {
		return
	}
	dt := workType(k.Out[0].DType())
	cur := k.as(k.T(0), dt)
	for d, x := range ax {
		if x.in == x.out && x.scale == 1 {
			continue
		}
		sizes := slices.Clone(cur.Sizes())
		sizes[2+d] = x.in
		next := tensor.New(dt, sizes...)
		outer, inner := int64(1), int64(1)
		for i, s := range sizes {
			if i < 2+d {
				outer *= s
			} else if i > 2+d {
				inner *= s
			}
		}
		at, w := make([][]int64, x.out), make([][]float64, x.out)
		for i := range x.out {
			at[i], w[i] = f(i, x)
		}
		src, dst := tensor.Contiguous[T](cur), tensor.Contiguous[T](next)
		clear(dst)
		k.Pool.ParallelFor(int(outer), max(1, int(grain/(x.out*inner))), func(lo, hi int) {
			for r := int64(lo); r < int64(hi); r++ {
				for i := range x.out {
					line := src[(r*x.out+i)*inner : (r*x.out+i+1)*inner]
					for t, s := range at[i] {
						to, c := dst[(r*x.in+s)*inner:], T(w[i][t])
						for j, v := range line {
							to[j] += c * v
						}
					}
				}
			}
		})
		cur = next
	}
	Copy(k.Pool, k.Out[0], cur)
}
