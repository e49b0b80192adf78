package loader

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/internal/golden"
	"github.com/pt2go/pt2/tensor"
)

var corpora = []string{"old-public", "opinfo-public", "suite-public", "edge-public", "reports-public", "zoo-selection", "real-public"}

// subclasses reports the cases of the suite whose weights are tensor subclasses, which no other language can build.
func subclasses(id string) bool {
	return strings.HasPrefix(id, "exp.test_export_module-0") || strings.HasPrefix(id, "exp.test_subclasses_parameterization_nested-0")
}

// TestCorpora loads every archive, saves each of its programs and loads that again. Programs of today's schema must come out as
// PyTorch wrote them, byte for byte; older ones must print alike. Weights must keep values and sharing.
func TestCorpora(t *testing.T) {
	for _, corpus := range corpora {
		t.Run(corpus, func(t *testing.T) {
			golden.EachModel(t, corpus, func(id string, model []byte) bool {
				c, err := OpenBytes(model, Options{})
				if err != nil {
					if !subclasses(id) {
						t.Errorf("%s: %v", id, err)
					}
					return true
				}
				for _, name := range c.Names() {
					checkSaved(t, id, c, name)
				}
				checkRecords(t, id, c)
				return true
			})
		})
	}
}

func checkSaved(t *testing.T, id string, c *Contents, name string) {
	t.Helper()
	p := c.Programs[name]
	var b bytes.Buffer
	if err := PackagePT2(&b, &Package{Programs: map[string]*export.Program{name: p}}, SaveOptions{}); err != nil {
		t.Errorf("%s: save: %v", id, err)
		return
	}
	d, err := OpenBytes(b.Bytes(), Options{})
	if err != nil {
		t.Errorf("%s: load again: %v", id, err)
		return
	}
	q := d.Programs[name]
	if p.SchemaVersion() == (export.Version{Major: 8, Minor: 20}) {
		for _, record := range []string{archive.ModelsDir + name + ".json"} {
			want, err1 := c.r.ReadBytes(record)
			got, err2 := d.r.ReadBytes(record)
			if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: record %s is not what PyTorch wrote (%v, %v)", id, record, err1, err2)
			}
		}
	}
	if got, want := q.String(), p.String(); got != want {
		t.Errorf("%s: printed differently:\n%s\n%s", id, got, want)
	}
	sameState(t, id, p.StateDict(), q.StateDict())
}

func sameState(t *testing.T, id string, a, b *export.OrderedMap[*tensor.Tensor]) {
	t.Helper()
	if a.Len() != b.Len() {
		t.Errorf("%s: %d weights, want %d", id, b.Len(), a.Len())
	}
	there := map[*tensor.Storage]*tensor.Storage{}
	for name, x := range a.All() {
		y, ok := b.Get(name)
		if !ok {
			t.Errorf("%s: weight %s is gone", id, name)
			continue
		}
		if s := there[x.Storage()]; s != nil && s != y.Storage() {
			t.Errorf("%s: weight %s shares its storage no more", id, name)
		}
		there[x.Storage()] = y.Storage()
		if !bytes.Equal(x.Storage().Bytes(), y.Storage().Bytes()) || x.DType() != y.DType() || x.Offset() != y.Offset() {
			t.Errorf("%s: weight %s differs", id, name)
		}
	}
}

// checkRecords saves the whole archive. Written twice it must be the same bytes, and of today's archives every record must be what
// PyTorch wrote, in its order.
func checkRecords(t *testing.T, id string, c *Contents) {
	t.Helper()
	pkg, err := c.Package()
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	var a, b bytes.Buffer
	if err := errors.Join(PackagePT2(&a, pkg, SaveOptions{}), PackagePT2(&b, pkg, SaveOptions{})); err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%s: saved twice, the bytes differ", id)
	}
	for _, p := range c.Programs {
		if p.SchemaVersion() != (export.Version{Major: 8, Minor: 20}) {
			return
		}
	}
	r, err := archive.NewBytes(a.Bytes(), archive.Options{})
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return
	}
	own := func(name string) bool { return containerRecords[name] }
	if got, want := slices.DeleteFunc(r.Names(), own), slices.DeleteFunc(c.r.Names(), own); !slices.Equal(got, want) {
		t.Errorf("%s: records %v\nwant %v", id, got, want)
		return
	}
	for _, name := range r.Names() {
		got, err1 := r.ReadBytes(name)
		want, err2 := c.r.ReadBytes(name)
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) && name != ".data/serialization_id" {
			t.Errorf("%s: record %s is not what PyTorch wrote (%v, %v)", id, name, err1, err2)
		}
	}
}
