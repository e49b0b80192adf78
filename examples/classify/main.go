// Command classify tells what is on a photo: a pretrained EfficientNet-Lite0 that PyTorch exported, run from Go.
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"log"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/image/draw"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/tensor"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal("classify: ", err)
	}
}

func run(args []string) error {
	data := dataDir()
	fs := flag.NewFlagSet("classify", flag.ContinueOnError)
	model := fs.String("model", filepath.Join(data, "real-public", "efficientnet-lite0", "model.pt2"), "PT2 archive of an ImageNet classifier")
	photo := fs.String("image", filepath.Join(data, "grace_hopper.jpg"), "JPEG or PNG file")
	labels := fs.String("labels", filepath.Join(data, "imagenet_classes.txt"), "class names, one a line")
	top := fs.Int("top", 5, "how many classes to print")
	if err := fs.Parse(args); err != nil {
		return err
	}
	m, err := pt2.Load(*model)
	if err != nil {
		return err
	}
	defer m.Close()
	x, err := loadImage(*photo, 224)
	if err != nil {
		return err
	}
	start := time.Now()
	out, err := m.RunTensors(context.Background(), x)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %v\n", *photo, time.Since(start).Round(time.Millisecond))
	names, err := os.ReadFile(*labels)
	if err != nil {
		return err
	}
	return print(out[0], strings.Split(strings.TrimSpace(string(names)), "\n"), *top)
}

// dataDir is the repository's testdata, from wherever in the repository the command is started.
func dataDir() string {
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		data := filepath.Join(dir, "testdata")
		if _, err := os.Stat(filepath.Join(data, "grace_hopper.jpg")); err == nil {
			return data
		}
		if abs, err := filepath.Abs(dir); err != nil || abs == filepath.Dir(abs) {
			return "testdata"
		}
	}
}

// loadImage reads an image, scales it to size x size and gives it as float32 [1, 3, size, size] in [-1, 1].
func loadImage(path string, size int) (*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, _, err := image.Decode(f)
	if err != nil {
		return nil, err
	}
	dst := image.NewRGBA(image.Rect(0, 0, size, size))
	draw.CatmullRom.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	plane := size * size
	data := make([]float32, 3*plane)
	for i := range plane {
		for c := range 3 {
			data[c*plane+i] = float32(dst.Pix[4*i+c])/127.5 - 1
		}
	}
	return tensor.FromSlice(data, 1, 3, int64(size), int64(size))
}

// print lists the likeliest classes; logits is [1, classes].
func print(logits *tensor.Tensor, names []string, top int) error {
	v, err := logits.Floats()
	if err != nil {
		return err
	}
	order := make([]int, len(v))
	sum, best := 0.0, math.Inf(-1)
	for i, x := range v {
		order[i] = i
		best = math.Max(best, x)
	}
	for _, x := range v {
		sum += math.Exp(x - best)
	}
	sort.Slice(order, func(a, b int) bool { return v[order[a]] > v[order[b]] })
	for _, i := range order[:min(top, len(order))] {
		name := fmt.Sprint(i)
		if i < len(names) {
			name = names[i]
		}
		fmt.Printf("%5.1f%%  %4d  %s\n", 100*math.Exp(v[i]-best)/sum, i, name)
	}
	return nil
}
