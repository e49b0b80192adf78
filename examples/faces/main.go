// Command faces finds the faces on a photo with the three nets of MTCNN and draws them into a PNG file.
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"log"
	"math"
	"os"

	"github.com/pt2go/pt2/examples/internal/data"
	"github.com/pt2go/pt2/examples/internal/vision"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal("faces: ", err)
	}
}

func run(args []string, w io.Writer) error {
	fs := flag.NewFlagSet("faces", flag.ContinueOnError)
	models := fs.String("models", data.Path("real-public"), "folder with mtcnn-pnet, mtcnn-rnet and mtcnn-onet")
	photo := fs.String("image", data.Path("grace_hopper.jpg"), "JPEG or PNG file")
	output := fs.String("output", "faces.png", "PNG file to write")
	if err := fs.Parse(args); err != nil {
		return err
	}
	d, err := NewDetector(*models)
	if err != nil {
		return err
	}
	defer d.Close()
	img, err := vision.Open(*photo)
	if err != nil {
		return err
	}
	faces, err := d.Detect(context.Background(), vision.Tensor(img))
	if err != nil {
		return err
	}
	for _, f := range faces {
		fmt.Fprintf(w, "face %.4f at %.1f, %.1f to %.1f, %.1f\n", f.Score, f.Box[0], f.Box[1], f.Box[2], f.Box[3])
	}
	out, err := os.Create(*output)
	if err != nil {
		return err
	}
	if err := png.Encode(out, drawn(img, faces)); err != nil {
		out.Close()
		return err
	}
	fmt.Fprintf(w, "%d faces, drawn into %s\n", len(faces), *output)
	return out.Close()
}

// drawn copies a picture and marks the faces.
func drawn(src image.Image, faces []Face) image.Image {
	r := src.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	draw.Draw(dst, dst.Bounds(), src, r.Min, draw.Src)
	green, red := image.NewUniform(color.RGBA{0, 255, 0, 255}), image.NewUniform(color.RGBA{255, 0, 0, 255})
	fill := func(x0, y0, x1, y1 float64, c image.Image) {
		r := image.Rect(int(math.Round(x0)), int(math.Round(y0)), int(math.Round(x1)), int(math.Round(y1)))
		draw.Draw(dst, r, c, image.Point{}, draw.Src)
	}
	const line = 3
	for _, f := range faces {
		x0, y0, x1, y1 := f.Box[0], f.Box[1], f.Box[2], f.Box[3]
		fill(x0, y0, x1, y0+line, green)
		fill(x0, y1-line, x1, y1, green)
		fill(x0, y0, x0+line, y1, green)
		fill(x1-line, y0, x1, y1, green)
		for _, p := range f.Points {
			fill(p[0]-line, p[1]-line, p[0]+line, p[1]+line, red)
		}
	}
	return dst
}
