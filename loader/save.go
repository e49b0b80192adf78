package loader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
)

// SaveOptions configure saving. The zero value is the default.
type SaveOptions struct {
	// ExtraFiles go to extra/NAME.
	ExtraFiles map[string]string
	// Opset overrides versions of operator sets that the program records.
	Opset map[string]int
}

// File is a file to be packed by name.
type File struct {
	Name string
	Data []byte
}

// Package is what [PackagePT2] writes.
type Package struct {
	Programs   map[string]*export.Program
	AOTI       map[string][]File // compiled models, by model name
	ExecuTorch []File
	ExtraFiles map[string]string
}

// Save writes p as torch.export.save does: an archive with the one program "model", which PyTorch 2.12 and later loads.
func Save(w io.Writer, p *export.Program, opts SaveOptions) error {
	return PackagePT2(w, &Package{Programs: map[string]*export.Program{"model": p}}, opts)
}

// SaveFile is [Save] to a file. The archive's root folder is the file's name without the last suffix.
func SaveFile(path string, p *export.Program, opts SaveOptions) error {
	w, err := archive.Create(path)
	if err != nil {
		return err
	}
	return pack(w, &Package{Programs: map[string]*export.Program{"model": p}}, opts)
}

// PackagePT2 writes programs and other parts as one archive, as torch.export.pt2_archive's package_pt2 does.
func PackagePT2(w io.Writer, pkg *Package, opts SaveOptions) error {
	return pack(archive.NewWriter(w, ""), pkg, opts)
}

// PackagePT2File is [PackagePT2] to a file.
func PackagePT2File(path string, pkg *Package, opts SaveOptions) error {
	w, err := archive.Create(path)
	if err != nil {
		return err
	}
	return pack(w, pkg, opts)
}

func pack(w *archive.Writer, pkg *Package, opts SaveOptions) error {
	if err := packAll(&saver{w: w}, pkg, opts); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

func packAll(s *saver, pkg *Package, opts SaveOptions) error {
	if len(pkg.Programs) == 0 && len(pkg.AOTI) == 0 && len(pkg.ExtraFiles)+len(opts.ExtraFiles) == 0 {
		return &export.ArgumentError{Name: "Package", Got: "nothing", Want: "a program, a compiled model or an extra file"}
	}
	for _, name := range slices.Sorted(maps.Keys(pkg.Programs)) {
		if pkg.Programs[name] == nil {
			return &export.ArgumentError{Name: "Package.Programs[" + name + "]", Got: "nil", Want: "a program"}
		}
		if err := s.program(name, pkg.Programs[name], opts.Opset); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pkg.AOTI)) {
		if err := s.files(archive.AOTInductorDir+name+"/", pkg.AOTI[name]); err != nil {
			return err
		}
	}
	for _, extra := range []map[string]string{pkg.ExtraFiles, opts.ExtraFiles} {
		for _, name := range slices.Sorted(maps.Keys(extra)) {
			if err := s.w.WriteString(archive.ExtraDir+name, extra[name]); err != nil {
				return err
			}
		}
	}
	return s.files(archive.ExecuTorchDir, pkg.ExecuTorch)
}

// saver writes the records of programs. Weights and constants are numbered through the whole archive.
type saver struct {
	w                  *archive.Writer
	weights, constants int
}

func (s *saver) files(dir string, files []File) error {
	for _, f := range files {
		if err := s.w.WriteBytes(dir+f.Name, f.Data); err != nil {
			return err
		}
	}
	return nil
}

// program writes one program in PyTorch's order of records.
func (s *saver) program(name string, p *export.Program, opset map[string]int) error {
	parts := p.Parts()
	params := map[string]bool{}
	for _, in := range parts.Signature.Inputs {
		params[in.Target] = params[in.Target] || in.Kind == export.Parameter
	}
	weights := s.group(archive.WeightsDir, "weight_", &s.weights)
	for k, t := range parts.State.All() {
		weights.add(k, t, params[k], parts.RequiresGrad[k])
	}
	if err := weights.write(archive.WeightsDir + name + "_weights_config.json"); err != nil {
		return err
	}
	constants := s.group(archive.ConstantsDir, "tensor_", &s.constants)
	for k, c := range parts.Constants.All() {
		switch c := c.(type) {
		case *tensor.Tensor:
			constants.add(k, c, params[k], parts.RequiresGrad[k])
		case *export.CustomObject:
			constants.object(k, c)
		default:
			return fmt.Errorf("loader: the constant %s of type %T cannot be written", k, c)
		}
	}
	if err := constants.write(archive.ConstantsDir + name + "_constants_config.json"); err != nil {
		return err
	}
	src, err := encodeProgram(p, opset)
	if err != nil {
		return err
	}
	text, err := schema.Encode(src)
	if err != nil {
		return err
	}
	if err := s.w.WriteBytes(archive.ModelsDir+name+".json", text); err != nil {
		return err
	}
	samples, err := sampleInputs(parts.ExampleInputs)
	if err != nil {
		return err
	}
	return s.w.WriteBytes(archive.SampleInputsDir+name+".pt", samples)
}

// sampleInputs is the torch.save file of (args, kwargs), empty without a recorded call.
func sampleInputs(ex *export.Example) ([]byte, error) {
	if ex == nil {
		return nil, nil
	}
	kwargs := &tensorio.Dict{}
	for _, kw := range ex.Kwargs {
		kwargs.Keys = append(kwargs.Keys, kw.Name)
		kwargs.Values = append(kwargs.Values, kw.Value)
	}
	var b bytes.Buffer
	err := tensorio.WritePT(&b, tensorio.Tuple{tensorio.Tuple(ex.Args), kwargs})
	return b.Bytes(), err
}

// payloads collects tensors by storage, so that each storage becomes one record.
type payloads struct {
	s           *saver
	dir, prefix string
	next        *int
	groups      []*payloadGroup
	byStorage   map[*tensor.Storage]*payloadGroup
	err         error
}

type payloadGroup struct {
	storage *tensor.Storage
	object  *export.CustomObject
	entries schema.Map[schema.PayloadMeta]
}

func (s *saver) group(dir, prefix string, next *int) *payloads {
	return &payloads{s: s, dir: dir, prefix: prefix, next: next, byStorage: map[*tensor.Storage]*payloadGroup{}}
}

func (p *payloads) add(name string, t *tensor.Tensor, isParam, requiresGrad bool) {
	if t.IsConj() || t.IsNeg() {
		p.err = fmt.Errorf("loader: %s is lazily conjugated or negated; resolve it before saving", name)
		return
	}
	g := p.byStorage[t.Storage()]
	if g == nil {
		g = &payloadGroup{storage: t.Storage()}
		p.byStorage[t.Storage()] = g
		p.groups = append(p.groups, g)
	}
	meta := &schema.TensorMeta{DType: dtypes[t.DType()], Sizes: constInts(t.Sizes()), RequiresGrad: requiresGrad, Device: schema.Device{Type: "cpu"},
		Strides: constInts(t.Strides()), StorageOffset: schema.SymInt{Int: t.Offset()}, Layout: schema.Layout(aten.StridedLayout)}
	g.entries = append(g.entries, schema.Entry[schema.PayloadMeta]{Key: name, Value: schema.PayloadMeta{IsParam: isParam, TensorMeta: meta}})
}

func (p *payloads) object(name string, o *export.CustomObject) {
	g := &payloadGroup{object: o, entries: schema.Map[schema.PayloadMeta]{{Key: name, Value: schema.PayloadMeta{UsePickle: true}}}}
	p.groups = append(p.groups, g)
}

func constInts(in []int64) []schema.SymInt {
	out := make([]schema.SymInt, len(in))
	for i, v := range in {
		out[i].Int = v
	}
	return out
}

// write writes the records and the config that names them.
func (p *payloads) write(config string) error {
	if p.err != nil {
		return p.err
	}
	c := &schema.PayloadConfig{}
	for _, g := range p.groups {
		prefix, data := p.prefix, []byte(nil)
		if g.object != nil {
			prefix, data = g.object.Form+"_", g.object.Bytes
		} else {
			data = g.storage.Bytes()
		}
		path := fmt.Sprintf("%s%d", prefix, *p.next)
		*p.next++
		if err := p.s.w.WriteBytes(p.dir+path, data); err != nil {
			return err
		}
		for _, e := range g.entries {
			e.Value.PathName = path
			c.Config = append(c.Config, e)
		}
	}
	b, err := schema.EncodeConfig(c)
	if err != nil {
		return err
	}
	return p.s.w.WriteBytes(config, b)
}
