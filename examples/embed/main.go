// Command embed carries its model inside the binary: nothing to install beside it, nothing written to disk.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/pt2go/pt2"
)

// The archive was made by scorer.py.
//
//go:embed scorer.pt2
var archive []byte

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal("embed: ", err)
	}
}

// request has a field for each parameter of the program's forward(features, options, *, temperature).
type request struct {
	Features    [][]float32
	Options     map[string][]float32
	Temperature float32
}

// ranking has a field for each field of the dataclass that forward returns.
type ranking struct {
	Probs [][]float32
	Best  []int
}

func run(w io.Writer) error {
	m, err := pt2.LoadBytes(archive)
	if err != nil {
		return err
	}
	defer m.Close()
	score := pt2.Func[request, ranking](m)
	r, err := score(context.Background(), request{
		Features:    [][]float32{{1, 0, 0, 1}, {-1, 2, 0, -2}},
		Options:     map[string][]float32{"bias": {0, 0.5, 0}},
		Temperature: 2,
	})
	if err != nil {
		return err
	}
	for i, best := range r.Best {
		fmt.Fprintf(w, "row %d: class %d with %.4f\n", i, best, r.Probs[i][best])
	}
	return nil
}
