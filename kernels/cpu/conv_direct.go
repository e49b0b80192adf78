package cpu

// number is what the plain loops below work on.
type number interface {
	~float32 | ~float64 | ~int64 | ~complex128
}

// ConvDirect is the definition of the convolution, for types without a fast path.
func ConvDirect[T number](c *Conv, x, w, bias, out []T) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	in, taps := volume(c.Size), volume(c.Kernel)
	i := 0
	for n := range c.N {
		for o := range c.Out {
			src := x[(n*c.In+o/outG*inG)*in:]
			f := w[o*inG*taps:]
			for z := range c.OutSize[0] {
				for y := range c.OutSize[1] {
					for xx := range c.OutSize[2] {
						var s T
						if bias != nil {
							s = bias[o]
						}
						out[i] = s + at(c, src, f, inG, z, y, xx)
						i++
					}
				}
			}
		}
	}
}

func at[T number](c *Conv, src, f []T, inG, z, y, x int) T {
	var s T
	in := volume(c.Size)
	q := 0
	for ch := range inG {
		for kd := range c.Kernel[0] {
			iz := z*c.Stride[0] - c.Pad[0] + kd*c.Dilation[0]
			for kh := range c.Kernel[1] {
				iy := y*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
				for kw := range c.Kernel[2] {
					ix := x*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
					if iz >= 0 && iz < c.Size[0] && iy >= 0 && iy < c.Size[1] && ix >= 0 && ix < c.Size[2] {
						s += f[q] * src[ch*in+(iz*c.Size[1]+iy)*c.Size[2]+ix]
					}
					q++
				}
			}
		}
	}
	return s
}

// ConvTransposed is the definition of the transposed convolution.
func ConvTransposed[T number](c *Conv, x, w, bias, out []T) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	in, pos, taps := volume(c.Size), volume(c.OutSize), volume(c.Kernel)
	for n := range c.N {
		for o := range c.Out {
			plane := out[(n*c.Out+o)*pos : (n*c.Out+o+1)*pos]
			for i := range plane {
				plane[i] = 0
				if bias != nil {
					plane[i] = bias[o]
				}
			}
			g := o / outG
			for ch := range inG {
				src := x[(n*c.In+g*inG+ch)*in:]
				f := w[((g*inG+ch)*outG+o%outG)*taps:]
				scatter(c, plane, src, f)
			}
		}
	}
}

func scatter[T number](c *Conv, plane, src, f []T) {
	i := 0
	for z := range c.Size[0] {
		for y := range c.Size[1] {
			for x := range c.Size[2] {
				v := src[i]
				i++
				q := 0
				for kd := range c.Kernel[0] {
					oz := z*c.Stride[0] - c.Pad[0] + kd*c.Dilation[0]
					for kh := range c.Kernel[1] {
						oy := y*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
						for kw := range c.Kernel[2] {
							ox := x*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
							if oz >= 0 && oz < c.OutSize[0] && oy >= 0 && oy < c.OutSize[1] && ox >= 0 && ox < c.OutSize[2] {
								plane[(oz*c.OutSize[1]+oy)*c.OutSize[2]+ox] += v * f[q]
							}
							q++
						}
					}
				}
			}
		}
	}
}
