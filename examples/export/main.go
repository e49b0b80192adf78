// Command export builds a model in Go, loads its weights from a file of safetensors, exports it with a batch of any size, and runs what it
// saved. PyTorch loads the archive as well: torch.export.load("digits.pt2").
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/functional"
	"github.com/pt2go/pt2/tracer/nn"
)

// The weights were trained by digits.py.
//
//go:embed digits.safetensors
var weights []byte

// digits tells which digit an image of 8 by 8 shows. Its fields are the names in the state dict: features.0.weight and so on.
type digits struct {
	Features *nn.Sequential
	Head     *nn.Linear
}

func newDigits() *digits {
	g := nn.Seed(0)
	return &digits{
		Features: nn.NewSequential(nn.NewConv2d(g, 1, 8, 3, nn.Padding(1)), nn.NewBatchNorm2d(8), nn.ReLU(),
			nn.NewConv2d(g, 8, 16, 3, nn.Padding(1)), nn.ReLU(), nn.NewMaxPool2d(2)),
		Head: nn.NewLinear(g, 256, 10),
	}
}

// InputNames are those of Forward's arguments, by which programs know them.
func (d *digits) InputNames() []string { return []string{"image"} }

// Forward takes images [batch, 1, 8, 8] and gives probabilities [batch, 10].
func (d *digits) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	h := functional.FlattenUsingInts(tracer.Call1(d.Features, x[0]), functional.Kw("start_dim", 1))
	return []*tracer.Tensor{functional.SoftmaxInt(tracer.Call1(d.Head, h), 1)}
}

func main() {
	dir, err := os.MkdirTemp("", "pt2-export")
	if err != nil {
		log.Fatal("export: ", err)
	}
	defer os.RemoveAll(dir)
	if err := run(filepath.Join(dir, "digits.pt2"), os.Stdout); err != nil {
		log.Fatal("export: ", err)
	}
}

func run(file string, w io.Writer) error {
	if err := save(file); err != nil {
		return err
	}
	m, err := pt2.Load(file)
	if err != nil {
		return err
	}
	defer m.Close()
	classify := pt2.Func[[][1][8][8]float32, [][]float32](m)
	all, err := classify(context.Background(), images)
	if err != nil {
		return err
	}
	for i, p := range all {
		best := 0
		for d := range p {
			if p[d] > p[best] {
				best = d
			}
		}
		fmt.Fprintf(w, "image %d shows a %d (%.3f)\n", i, best, p[best])
	}
	return nil
}

// save exports the model with its trained weights.
func save(path string) error {
	model := newDigits()
	file, err := tensorio.ParseSafetensors(weights)
	if err != nil {
		return err
	}
	state, err := file.Tensors()
	if err != nil {
		return err
	}
	if err := tracer.LoadStateDict(model, state); err != nil {
		return err
	}
	batch := tracer.MustDim("batch", tracer.Max(256))
	example := tensor.New(tensor.Float32, 2, 1, 8, 8)
	p, err := tracer.Export(model, []*tensor.Tensor{example}, tracer.WithDynamic("image", 0, batch))
	if err != nil {
		return err
	}
	return loader.SaveFile(path, p, loader.SaveOptions{})
}
