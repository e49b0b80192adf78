package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// rowsOfSums is how many rows are added up in float32 before their sums go on in float64.
const rowsOfSums = 64

// GroupNormNHWCF32 is [GroupNormF32] for x [n, hw, c]: channels last. dst may be x.
func GroupNormNHWCF32(p *pool.Pool, dst, x, weight, bias []float32, n, c, hw, groups int, eps float32, mean, rstd []float32) {
	if n*c*hw == 0 {
		return
	}
	image := c * hw
	row := c // several positions make a row if there are few channels
	for row <= 256 && hw%2 == 0 {
		row, hw = 2*row, hw/2
	}
	blocks := (hw + rowsOfSums - 1) / rowsOfSums
	buf := scratch((blocks + 3) * row)
	defer buf.free()
	sums, rest := buf.data[:blocks*row], buf.data[blocks*row:]
	center, scale, shift := rest[:row], rest[row:2*row], rest[2*row:3*row]
	for i := range n {
		g := groupNorm{p, x[i*image : (i+1)*image], sums, row, hw, c, c / groups}
		m := g.overGroups(func(d, row, _ []float32) { AddF32(d, d, row) })
		g.spread(center, m)
		v := g.overGroups(func(d, row, tmp []float32) {
			SubF32(tmp, row, center)
			MulAddF32(d, tmp, tmp, d)
		})
		for j, s := range v {
			r := 1 / float32(math.Sqrt(float64(float32(s)+eps)))
			v[j] = float64(r)
			if mean != nil {
				mean[i*groups+j] = float32(m[j])
			}
			if rstd != nil {
				rstd[i*groups+j] = r
			}
		}
		g.spread(scale, v)
		clear(shift)
		for at := 0; at < row; at += c {
			weigh(scale[at:at+c], weight, nil)
			copy(shift[at:at+c], bias)
		}
		out := dst[i*image:]
		p.ParallelFor(hw, rowGrain(2*row), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				d := out[r*row : (r+1)*row]
				SubF32(d, g.x[r*row:(r+1)*row], center)
				MulAddF32(d, d, scale, shift)
			}
		})
	}
}

// groupNorm is one image of hw rows of c elements: those of some positions' channels.
type groupNorm struct {
	p               *pool.Pool
	x, sums         []float32
	c, hw           int
	channels, group int // channels in all, and of a group
}

// overGroups gives the mean over each group of what add puts into the channels of its first argument for each row.
func (g *groupNorm) overGroups(add func(d, row, tmp []float32)) []float64 {
	blocks := len(g.sums) / g.c
	g.p.ParallelFor(blocks, max(1, 16384/(rowsOfSums*g.c)), func(lo, hi int) {
		tmp := scratch(g.c)
		defer tmp.free()
		for b := lo; b < hi; b++ {
			d := g.sums[b*g.c : (b+1)*g.c]
			clear(d)
			for r := b * rowsOfSums; r < min(g.hw, (b+1)*rowsOfSums); r++ {
				add(d, g.x[r*g.c:(r+1)*g.c], tmp.data)
			}
		}
	})
	m := make([]float64, g.channels/g.group)
	for i, s := range g.sums {
		m[i%g.channels/g.group] += float64(s)
	}
	for i := range m {
		m[i] /= float64(g.c * g.hw / len(m))
	}
	return m
}

// spread gives each channel its group's number.
func (g *groupNorm) spread(d []float32, v []float64) {
	for ch := range d {
		d[ch] = float32(v[ch%g.channels/g.group])
	}
}
