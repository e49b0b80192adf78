// Command classify tells what is on a photo: a pretrained EfficientNet-Lite0 that PyTorch exported, run from Go.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/examples/internal/data"
	"github.com/pt2go/pt2/examples/internal/vision"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal("classify: ", err)
	}
}

func run(args []string, w io.Writer) error {
	fs := flag.NewFlagSet("classify", flag.ContinueOnError)
	model := fs.String("model", data.Path("real-public", "efficientnet-lite0", "model.pt2"), "PT2 archive of an ImageNet classifier")
	photo := fs.String("image", data.Path("grace_hopper.jpg"), "JPEG or PNG file")
	labels := fs.String("labels", data.Path("imagenet_classes.txt"), "class names, one a line")
	top := fs.Int("top", 5, "how many classes to print")
	if err := fs.Parse(args); err != nil {
		return err
	}
	m, err := pt2.Load(*model)
	if err != nil {
		return err
	}
	defer m.Close()
	img, err := vision.Open(*photo)
	if err != nil {
		return err
	}
	names, err := os.ReadFile(*labels)
	if err != nil {
		return err
	}
	start := time.Now()
	logits, err := pt2.Call[[]float32](context.Background(), m, vision.Scaled(img, 224))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %v\n", *photo, time.Since(start).Round(time.Millisecond))
	for _, c := range vision.Top(logits, strings.Split(strings.TrimSpace(string(names)), "\n"), *top) {
		fmt.Fprintf(w, "%5.1f%%  %4d  %s\n", 100*c.P, c.Index, c.Name)
	}
	return nil
}
