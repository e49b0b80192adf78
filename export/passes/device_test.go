package passes_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
)

// saved writes a program and reads it again.
func saved(t *testing.T, p *export.Program) (*export.Program, int) {
	t.Helper()
	var b bytes.Buffer
	if err := loader.Save(&b, p, loader.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := loader.OpenBytes(b.Bytes(), loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Programs["model"], b.Len()
}

func TestMoveToDevice(t *testing.T) {
	p := program(t, "zoo-selection", "hf-bert-seqcls")
	there, err := passes.MoveToDevice(p, passes.ToDevice("cuda:1"))
	if err != nil {
		t.Fatal(err)
	}
	there, _ = saved(t, there)
	if text := there.String(); strings.Contains(text, "cpu") && !strings.Contains(p.String(), "cpu") {
		t.Error("the text names the CPU")
	}
	for _, v := range there.Graph().Values {
		if v.Tensor != nil && (v.Tensor.Device.Type != "cuda" || v.Tensor.Device.Index != 1) {
			t.Fatalf("%s is on %v", v.Name, v.Tensor.Device)
		}
	}
	if d := there.Parts().Devices; len(d) != there.StateDict().Len()+there.Constants().Len() {
		t.Errorf("%d of %d weights moved", len(d), there.StateDict().Len())
	}
	back, err := passes.MoveToDevice(there, passes.DeviceMap{"cuda:1": "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	if back.String() != p.String() {
		t.Error("moved there and back, the program prints differently")
	}
	same, err := passes.MoveToDevice(p, passes.DeviceMap{"cuda:7": "cuda:0"})
	if err != nil || same.String() != p.String() {
		t.Errorf("a device that does not occur: %v", err)
	}
	var arg *export.ArgumentError
	if _, err := passes.MoveToDevice(p, passes.ToDevice("toaster")); !errors.As(err, &arg) {
		t.Error(err)
	}
}

// A program with half its weights' bits takes and gives what it did, to the rounding of the weights.
func TestStoreWeightsAs(t *testing.T) {
	p := program(t, "zoo-selection", "hf-bert-seqcls")
	half, err := passes.StoreWeightsAs(p, tensor.BFloat16)
	if err != nil {
		t.Fatal(err)
	}
	_, before := saved(t, p)
	half, after := saved(t, half)
	if after >= before {
		t.Errorf("%d bytes became %d", before, after)
	}
	run := func(p *export.Program) []float32 {
		m, err := interp.New(p, interp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		in, err := interp.ExampleLeaves(p)
		if err != nil {
			t.Fatal(err)
		}
		out, err := m.Run(context.Background(), in...)
		if err != nil {
			t.Fatal(err)
		}
		return tensor.Data[float32](out[0].(*tensor.Tensor))
	}
	x, y := run(p), run(half)
	largest, off := float32(0), float32(0)
	for i := range x {
		largest, off = max(largest, x[i], -x[i]), max(off, x[i]-y[i], y[i]-x[i])
	}
	if off == 0 || off > largest/8 { // bfloat16 keeps 8 bits
		t.Errorf("off by %g of %g", off, largest)
	}
	var arg *export.ArgumentError
	if _, err := passes.StoreWeightsAs(p, tensor.Int8); !errors.As(err, &arg) {
		t.Error(err)
	}
}
