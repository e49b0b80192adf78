package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// slidingBlocks is the geometry of im2col and col2im: windows of an image as columns of a matrix.
type slidingBlocks struct {
	kernel, dilation, padding, stride [2]int64
}

func newSlidingBlocks(kernel, dilation, padding, stride []int64) slidingBlocks {
	var g slidingBlocks
	for i, dst := range []*[2]int64{&g.kernel, &g.dilation, &g.padding, &g.stride} {
		src := [][]int64{kernel, dilation, padding, stride}[i]
		Check(len(src) == 2, "It is expected %s equals to 2, but got size %d", [...]string{"kernel_size", "dilation", "padding", "stride"}[i], len(src))
		copy(dst[:], src)
	}
	Check(g.kernel[0] > 0 && g.kernel[1] > 0, "kernel size should be greater than zero, but got kernel_height: %d kernel_width: %d", g.kernel[0], g.kernel[1])
	Check(g.dilation[0] > 0 && g.dilation[1] > 0, "dilation should be greater than zero, but got dilation_height: %d dilation_width: %d", g.dilation[0], g.dilation[1])
	Check(g.padding[0] >= 0 && g.padding[1] >= 0, "padding should be non-negative, but got pad_height: %d pad_width: %d", g.padding[0], g.padding[1])
	Check(g.stride[0] > 0 && g.stride[1] > 0, "stride should be greater than zero, but got stride_height: %d stride_width: %d", g.stride[0], g.stride[1])
	return g
}

// blocks is the number of windows along dimension i (0 height, 1 width) of an image of the given size.
func (g *slidingBlocks) blocks(size symbolic.Int, i int) symbolic.Int {
	return size.AddN(2*g.padding[i] - g.dilation[i]*(g.kernel[i]-1) - 1).DivN(g.stride[i]).AddN(1)
}

// colView is a strided part [N, C, rows, cols] of an image or of a column matrix.
type colView struct {
	sizes   [4]int64
	strides func(t *tensor.Tensor) ([4]int64, int64)
}

func (v colView) of(t *tensor.Tensor) *tensor.Tensor {
	st, off := v.strides(t)
	return t.WithView(v.sizes[:], st[:], t.Offset()+off)
}

// each calls f for every position (i, j) in the kernel window: the pixels of an image [N, C, H, W] that the windows see
// there, and their places in the columns [N, C*kh*kw, L]. Pixels in the padding are left out.
func (g *slidingBlocks) each(height, width, n, c int64, f func(img, col colView)) {
	lh, lw := g.blocks(symbolic.N(height), 0).Int64(), g.blocks(symbolic.N(width), 1).Int64()
	if n*c*height*width == 0 {
		return
	}
	for i := range g.kernel[0] {
		for j := range g.kernel[1] {
			y0, ylo, yhi := g.span(0, i, height, lh)
			x0, xlo, xhi := g.span(1, j, width, lw)
			if ylo >= yhi || xlo >= xhi {
				continue
			}
			sizes := [4]int64{n, c, yhi - ylo, xhi - xlo}
			img := colView{sizes, func(t *tensor.Tensor) ([4]int64, int64) {
				s := t.Strides()
				return [4]int64{s[0], s[1], s[2] * g.stride[0], s[3] * g.stride[1]}, (y0+ylo*g.stride[0])*s[2] + (x0+xlo*g.stride[1])*s[3]
			}}
			col := colView{sizes, func(t *tensor.Tensor) ([4]int64, int64) {
				s := t.Strides()
				per := g.kernel[0] * g.kernel[1]
				return [4]int64{s[0], s[1] * per, s[2] * lw, s[2]}, (i*g.kernel[1]+j)*s[1] + (ylo*lw+xlo)*s[2]
			}}
			f(img, col)
		}
	}
}

// span gives for kernel position at along dimension i the pixel of window 0, and the range of windows whose pixel there
// lies inside the image.
func (g *slidingBlocks) span(i int, at, size, windows int64) (first, lo, hi int64) {
	first = at*g.dilation[i] - g.padding[i]
	if first < 0 {
		lo = (-first + g.stride[i] - 1) / g.stride[i]
	}
	if last := size - 1 - first; last >= 0 {
		hi = min(windows, last/g.stride[i]+1)
	}
	return first, lo, hi
}

// withBatch adds a leading dimension of size 1 where t has one dimension less than rank.
func withBatch(t *tensor.Tensor, rank int) *tensor.Tensor {
	if t.Dim() == rank {
		return t
	}
	return t.WithView(append([]int64{1}, t.Sizes()...), append([]int64{0}, t.Strides()...), t.Offset())
}

func shapeIm2col(a *Args) []Meta {
	x := a.Tensor(0)
	g := newSlidingBlocks(a.I64s(1), a.I64s(2), a.I64s(3), a.I64s(4))
	n := x.Dim()
	zero := symbolic.N(0)
	Check((n == 3 || n == 4) && x.Sizes[n-1].Ne(zero) && x.Sizes[n-2].Ne(zero) && x.Sizes[n-3].Ne(zero), "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", sizesText(x.Sizes))
	lh, lw := g.blocks(x.Sizes[n-2], 0), g.blocks(x.Sizes[n-1], 1)
	Check(lh.Gt(zero) && lw.Gt(zero), "Given input with spatial size (%v, %v), kernel_size=(%d, %d), dilation=(%d, %d), padding=(%d, %d), calculated shape of the array of sliding blocks as (%v, %v), but its components must be at least one.",
		x.Sizes[n-2], x.Sizes[n-1], g.kernel[0], g.kernel[1], g.dilation[0], g.dilation[1], g.padding[0], g.padding[1], lh, lw)
	sizes := append(cloneInts(x.Sizes[:n-3]), x.Sizes[n-3].MulN(g.kernel[0]*g.kernel[1]), lh.Mul(lw))
	return []Meta{Contig(x.DType, sizes...)}
}

func shapeCol2im(a *Args) []Meta {
	x, size := a.Tensor(0), a.Ints(1)
	Check(len(size) == 2, "It is expected output_size equals to 2, but got size %d", len(size))
	g := newSlidingBlocks(a.I64s(2), a.I64s(3), a.I64s(4), a.I64s(5))
	n := x.Dim()
	zero := symbolic.N(0)
	Check((n == 2 || n == 3) && x.Sizes[n-1].Ne(zero) && x.Sizes[n-2].Ne(zero), "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: %s", sizesText(x.Sizes))
	per := symbolic.N(g.kernel[0] * g.kernel[1])
	Check(x.Sizes[n-2].Mod(per).Eq(zero), "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=%v and kernel_size=(%d, %d).", x.Sizes[n-2], g.kernel[0], g.kernel[1])
	lh, lw := g.blocks(size[0], 0), g.blocks(size[1], 1)
	Check(lh.Ge(symbolic.N(1)) && lw.Ge(symbolic.N(1)) && x.Sizes[n-1].Eq(lh.Mul(lw)), "Given output_size=(%v, %v), kernel_size=(%d, %d), dilation=(%d, %d), padding=(%d, %d), stride=(%d, %d), expected size of input's dimension 2 to match the calculated number of sliding blocks %v * %v = %v, but got input.size(2)=%v.",
		size[0], size[1], g.kernel[0], g.kernel[1], g.dilation[0], g.dilation[1], g.padding[0], g.padding[1], g.stride[0], g.stride[1], lh, lw, lh.Mul(lw), x.Sizes[n-1])
	sizes := append(cloneInts(x.Sizes[:n-2]), x.Sizes[n-2].FloorDiv(per), size[0], size[1])
	return []Meta{Contig(x.DType, sizes...)}
}
