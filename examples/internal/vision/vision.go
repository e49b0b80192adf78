// Package vision turns pictures into tensors for the examples.
package vision

import (
	"fmt"
	"image"
	_ "image/jpeg" // so that Decode knows it
	_ "image/png"
	"io"
	"math"
	"os"
	"sort"

	"golang.org/x/image/draw"

	"github.com/pt2go/pt2/tensor"
)

// MaxPixels bounds the pictures that [Decode] takes: a small file may claim a huge size.
const MaxPixels = 64 << 20

// Decode reads a JPEG or PNG picture.
func Decode(r io.ReadSeeker) (image.Image, error) {
	c, _, err := image.DecodeConfig(r)
	if err != nil {
		return nil, err
	}
	if int64(c.Width)*int64(c.Height) > MaxPixels {
		return nil, fmt.Errorf("a picture of %d x %d pixels is too large", c.Width, c.Height)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(r)
	return img, err
}

// Open reads a picture from a file.
func Open(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Decode(f)
}

// Scaled scales a picture to size x size and gives it as float32 [1, 3, size, size] in [-1, 1].
func Scaled(src image.Image, size int) *tensor.Tensor {
	dst := image.NewRGBA(image.Rect(0, 0, size, size))
	draw.CatmullRom.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	t := Tensor(dst)
	for i, v := range tensor.Contiguous[float32](t) {
		tensor.Contiguous[float32](t)[i] = v/127.5 - 1
	}
	return t
}

// Tensor gives a picture as float32 [1, 3, height, width] with values from 0 to 255.
func Tensor(src image.Image) *tensor.Tensor {
	r := src.Bounds()
	rgba := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	draw.Draw(rgba, rgba.Bounds(), src, r.Min, draw.Src)
	t := tensor.New(tensor.Float32, 1, 3, int64(r.Dy()), int64(r.Dx()))
	data, plane := tensor.Contiguous[float32](t), r.Dx()*r.Dy()
	for i := range plane {
		for c := range 3 {
			data[c*plane+i] = float32(rgba.Pix[4*i+c])
		}
	}
	return t
}

// Class is a class with its probability.
type Class struct {
	Index int
	Name  string
	P     float64
}

// Top gives the likeliest n classes by softmax over logits.
func Top(logits []float32, names []string, n int) []Class {
	best, sum := math.Inf(-1), 0.0
	for _, x := range logits {
		best = math.Max(best, float64(x))
	}
	out := make([]Class, len(logits))
	for i, x := range logits {
		out[i] = Class{Index: i, P: math.Exp(float64(x) - best)}
		if sum += out[i].P; i < len(names) {
			out[i].Name = names[i]
		}
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].P > out[b].P })
	out = out[:min(n, len(out))]
	for i := range out {
		out[i].P /= sum
	}
	return out
}
