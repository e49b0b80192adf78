package loader

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
)

// TestSaveOptions: extra files, versions of operator sets and the protocol of the pickle are in the archive as they were asked for.
func TestSaveOptions(t *testing.T) {
	var p *export.Program
	golden.EachModel(t, "edge-public", func(id string, model []byte) bool {
		c, err := OpenBytes(model, Options{})
		if err != nil {
			t.Fatal(err)
		}
		p = c.Programs["model"]
		return false
	})
	ex, ok := p.ExampleInputs()
	if !ok {
		t.Fatal("no example inputs")
	}
	p, err := p.WithExampleInputs(ex) // written anew, not as they were read
	if err != nil {
		t.Fatal(err)
	}
	for protocol := 2; protocol <= 5; protocol++ {
		var b bytes.Buffer
		opts := SaveOptions{ExtraFiles: map[string]string{"labels/de.txt": "Größe\n"}, Opset: map[string]int{"mine": 7}, PickleProtocol: protocol}
		if err := Save(&b, p, opts); err != nil {
			t.Fatal(err)
		}
		c, err := OpenBytes(b.Bytes(), Options{ExpectedOpset: map[string]int{"mine": 7, "aten": 10}})
		if err != nil {
			t.Fatal(err)
		}
		if c.ExtraFiles["labels/de.txt"] != "Größe\n" || len(c.ExtraFiles) != 1 {
			t.Errorf("extra files %v", c.ExtraFiles)
		}
		record, err := c.Archive().ReadBytes("data/sample_inputs/model.pt")
		if err != nil {
			t.Fatal(err)
		}
		z, err := archive.NewBytes(record, archive.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pickled, err := z.ReadBytes("data.pkl")
		if err != nil || len(pickled) < 2 || pickled[0] != 0x80 || int(pickled[1]) != protocol {
			t.Errorf("protocol %d: the pickle begins with %x (%v)", protocol, pickled[:min(2, len(pickled))], err)
		}
	}
	var ae *export.ArgumentError
	for _, protocol := range []int{-1, 1, 6} {
		if err := Save(&bytes.Buffer{}, p, SaveOptions{PickleProtocol: protocol}); !errors.As(err, &ae) {
			t.Errorf("protocol %d: %v", protocol, err)
		}
	}
}
