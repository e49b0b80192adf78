package main

import (
	"context"
	"errors"
	"image/color"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/examples/internal/data"
	"github.com/pt2go/pt2/examples/internal/vision"
	"github.com/pt2go/pt2/tensor"
)

// want is what testdata/reference.py, the same pipeline in PyTorch 2.15, prints for this photo.
var want = []Face{{
	Score:  0.9998,
	Box:    [4]float64{174.4, 119.56, 355.65, 340.46},
	Points: [5][2]float64{{221.67, 192.21}, {309.83, 186.13}, {269.36, 239.17}, {232.65, 279.65}, {306.64, 275.93}},
}}

// Go's JPEG decoder rounds colours otherwise than Pillow, which the reference uses, hence the tolerance of a pixel.
const tolerance = 1.0

func TestFacesAgreeWithPyTorch(t *testing.T) {
	d, err := NewDetector(data.Path("real-public"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	img, err := vision.Open(data.Path("grace_hopper.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Detect(context.Background(), vision.Tensor(img))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d faces, want %d: %v", len(got), len(want), got)
	}
	for i, w := range want {
		far := math.Abs(got[i].Score-w.Score) > 0.001
		for k := range w.Box {
			far = far || math.Abs(got[i].Box[k]-w.Box[k]) > tolerance
		}
		for k := range w.Points {
			far = far || math.Hypot(got[i].Points[k][0]-w.Points[k][0], got[i].Points[k][1]-w.Points[k][1]) > tolerance
		}
		if far {
			t.Errorf("face %d: got %v\nwant %v", i, got[i], w)
		}
	}
}

func TestNothingToFind(t *testing.T) {
	d, err := NewDetector(data.Path("real-public"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, size := range [][2]int64{{40, 50}, {8, 8}} {
		got, err := d.Detect(context.Background(), tensor.New(tensor.Float32, 1, 3, size[0], size[1]))
		if err != nil || len(got) != 0 {
			t.Errorf("black %v: %v %v", size, got, err)
		}
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	path := filepath.Join(t.TempDir(), "faces.png")
	if err := run([]string{"-output", path}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "1 faces, drawn into") {
		t.Error(out.String())
	}
	img, err := vision.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if c := color.RGBAModel.Convert(img.At(265, 121)); c != (color.RGBA{0, 255, 0, 255}) {
		t.Errorf("the top of the box is %v", c)
	}
	if err := run([]string{"-models", t.TempDir()}, &out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no models: %v", err)
	}
}
