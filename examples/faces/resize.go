package main

import "github.com/pt2go/pt2/tensor"

// crops cuts the candidates out of a picture: float32 [n, 3, size, size] in [-1, 1].
func crops(picture *tensor.Tensor, list []candidate, size int) *tensor.Tensor {
	out := tensor.New(tensor.Float32, int64(len(list)), 3, int64(size), int64(size))
	data := tensor.Contiguous[float32](out)
	one := 3 * size * size
	h, w := int(picture.Sizes()[2]), int(picture.Sizes()[3])
	for i, c := range list {
		x0, y0 := max(int(c.Box[0]), 1)-1, max(int(c.Box[1]), 1)-1
		x1, y1 := min(int(c.Box[2]), w), min(int(c.Box[3]), h)
		if x1 > x0+1 && y1 > y0+1 {
			copy(data[i*one:], tensor.Contiguous[float32](resize(picture, [4]int{x0, y0, x1, y1}, size, size)))
		} else {
			for k := range one {
				data[i*one+k] = -127.5 / 128
			}
		}
	}
	return out
}

// resize scales a part of a picture to h x w by the mean over the pixels that each new pixel covers, as
// torch.nn.functional.interpolate(mode="area") does, and brings it from [0, 255] to [-1, 1].
func resize(picture *tensor.Tensor, part [4]int, h, w int) *tensor.Tensor {
	rows, cols := part[3]-part[1], part[2]-part[0]
	width := int(picture.Sizes()[3])
	plane := int(picture.Sizes()[2]) * width
	src := tensor.Contiguous[float32](picture)
	out := tensor.New(tensor.Float32, 1, 3, int64(h), int64(w))
	dst := tensor.Contiguous[float32](out)
	for c := range 3 {
		for y := range h {
			y0, y1 := part[1]+y*rows/h, part[1]+((y+1)*rows+h-1)/h
			for x := range w {
				x0, x1 := part[0]+x*cols/w, part[0]+((x+1)*cols+w-1)/w
				sum := float32(0)
				for yy := y0; yy < y1; yy++ {
					for _, v := range src[c*plane+yy*width+x0 : c*plane+yy*width+x1] {
						sum += v
					}
				}
				dst[(c*h+y)*w+x] = (sum/float32((y1-y0)*(x1-x0)) - 127.5) / 128
			}
		}
	}
	return out
}
