package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pt2go/pt2"
)

// PyTorch says class 652, military uniform, for this photo.
func TestClassifyAgreesWithPyTorch(t *testing.T) {
	if err := run(nil); err != nil {
		t.Fatal(err)
	}
	m, err := pt2.Load(filepath.Join(dataDir(), "real-public", "efficientnet-lite0", "model.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x, err := loadImage(filepath.Join(dataDir(), "grace_hopper.jpg"), 224)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.RunTensors(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	v, err := out[0].Floats()
	if err != nil {
		t.Fatal(err)
	}
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	if best != 652 {
		t.Errorf("class %d, want 652", best)
	}
}
