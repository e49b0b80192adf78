package loader

import (
	"bytes"
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
	// PickleProtocol is the protocol of the example inputs' pickle, 2 to 5; 0 means 2, PyTorch's own default.
	PickleProtocol int
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
	// Other are records of any other name, written as they are.
	Other []File
	// Order names records ("models/encoder.json", "extra/labels.txt") in the order in which their like are written. What it does
	// not name follows, sorted.
	Order []string
}

// sorted lists the keys of a map of records in the package's order; prefix and suffix make a record's name of a key.
func sorted[V any](pkg *Package, m map[string]V, prefix, suffix string) []string {
	place := make(map[string]int, len(pkg.Order))
	for i, name := range pkg.Order {
		place[name] = i - len(pkg.Order)
	}
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return place[prefix+a+suffix] - place[prefix+b+suffix] })
	return keys
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
	if p := opts.PickleProtocol; p != 0 && (p < 2 || p > 5) {
		w.Abort()
		return &export.ArgumentError{Name: "SaveOptions.PickleProtocol", Got: fmt.Sprint(p), Want: "2 to 5"}
	}
	if err := packAll(newSaver(w, opts), pkg, opts); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

func packAll(s *saver, pkg *Package, opts SaveOptions) error {
	if len(pkg.Programs) == 0 && len(pkg.AOTI) == 0 && len(pkg.ExtraFiles)+len(opts.ExtraFiles) == 0 {
		return &export.ArgumentError{Name: "Package", Got: "nothing", Want: "a program, a compiled model or an extra file"}
	}
	for _, name := range sorted(pkg, pkg.Programs, archive.ModelsDir, ".json") {
		if pkg.Programs[name] == nil {
			return &export.ArgumentError{Name: "Package.Programs[" + name + "]", Got: "nil", Want: "a program"}
		}
		if err := s.program(name, pkg.Programs[name], opts.Opset); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
	}
	for _, name := range sorted(pkg, pkg.AOTI, archive.AOTInductorDir, "/") {
		if err := s.files(archive.AOTInductorDir+name+"/", pkg.AOTI[name]); err != nil {
			return err
		}
	}
	for _, extra := range []map[string]string{pkg.ExtraFiles, opts.ExtraFiles} {
		for _, name := range sorted(pkg, extra, archive.ExtraDir, "") {
			if err := s.w.WriteString(archive.ExtraDir+name, extra[name]); err != nil {
				return err
			}
		}
	}
	if err := s.files(archive.ExecuTorchDir, pkg.ExecuTorch); err != nil {
		return err
	}
	return s.files("", pkg.Other)
}

// saver writes the records of programs. Weights and constants are numbered through the whole archive, and a storage that several
// programs share is written once.
type saver struct {
	w                  *archive.Writer
	protocol           int
	weights, constants numbering
}

// numbering is the state of one folder of records.
type numbering struct {
	dir, prefix string
	next        int
	written     map[*tensor.Storage]string // records by storage
}

func newSaver(w *archive.Writer, opts SaveOptions) *saver {
	return &saver{w: w, protocol: opts.PickleProtocol,
		weights:   numbering{dir: archive.WeightsDir, prefix: "weight_", written: map[*tensor.Storage]string{}},
		constants: numbering{dir: archive.ConstantsDir, prefix: "tensor_", written: map[*tensor.Storage]string{}}}
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
	maps.Copy(params, parts.IsParameter)
	for _, in := range parts.Signature.Inputs {
		params[in.Target] = params[in.Target] || in.Kind == export.Parameter
	}
	weights := payloads{w: s.w, n: &s.weights, byStorage: map[*tensor.Storage]*payloadGroup{}}
	for k, t := range parts.State.All() {
		weights.add(k, t, params[k], &parts)
	}
	if err := weights.write(archive.WeightsDir + name + "_weights_config.json"); err != nil {
		return err
	}
	constants := payloads{w: s.w, n: &s.constants, byStorage: map[*tensor.Storage]*payloadGroup{}}
	for k, c := range parts.Constants.All() {
		switch c := c.(type) {
		case *tensor.Tensor:
			constants.add(k, c, params[k], &parts)
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
	samples := parts.ExampleRecord
	if samples == nil {
		if samples, err = sampleInputs(parts.ExampleInputs, s.protocol); err != nil {
			return err
		}
	}
	return s.w.WriteBytes(archive.SampleInputsDir+name+".pt", samples)
}

// sampleInputs is the torch.save file of (args, kwargs), empty without a recorded call.
func sampleInputs(ex *export.Example, protocol int) ([]byte, error) {
	if ex == nil {
		return nil, nil
	}
	kwargs := &tensorio.Dict{}
	for _, kw := range ex.Kwargs {
		kwargs.Keys = append(kwargs.Keys, kw.Name)
		kwargs.Values = append(kwargs.Values, kw.Value)
	}
	var b bytes.Buffer
	err := tensorio.WritePTProtocol(&b, tensorio.Tuple{tensorio.Tuple(ex.Args), kwargs}, protocol)
	return b.Bytes(), err
}

// payloads collects tensors by storage, so that each storage becomes one record.
type payloads struct {
	w         *archive.Writer
	n         *numbering
	groups    []*payloadGroup
	byStorage map[*tensor.Storage]*payloadGroup
	err       error
}

// noData is the storage of all tensors that have none.
var noData = tensor.NewStorage(0)

type payloadGroup struct {
	storage *tensor.Storage
	object  *export.CustomObject
	entries schema.Map[schema.PayloadMeta]
}

func (p *payloads) add(name string, t *tensor.Tensor, isParam bool, parts *export.Parts) {
	if t.IsConj() || t.IsNeg() {
		p.err = fmt.Errorf("loader: %s is lazily conjugated or negated; resolve it before saving", name)
		return
	}
	dt, ok := dtypes[t.DType()]
	if !ok {
		p.err = fmt.Errorf("loader: %s: the archive has no number for dtype %v", name, t.DType())
		return
	}
	storage, blank := t.Storage(), parts.Blank[name]
	if blank != nil {
		storage = noData
	}
	g := p.byStorage[storage]
	if g == nil {
		g = &payloadGroup{storage: storage}
		p.byStorage[storage] = g
		p.groups = append(p.groups, g)
	}
	device := schema.Device{Type: "cpu"}
	if d, ok := parts.Devices[name]; ok {
		device = encodeDevice(d)
	}
	meta := &schema.TensorMeta{DType: dt, Sizes: constInts(t.Sizes()), RequiresGrad: parts.RequiresGrad[name], Device: device,
		Strides: constInts(t.Strides()), StorageOffset: schema.SymInt{Int: t.Offset()}, Layout: schema.Layout(aten.StridedLayout)}
	if blank != nil {
		recorded := encodeMeta(blank)
		meta = &recorded
	}
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
		path, err := p.record(g)
		if err != nil {
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
	return p.w.WriteBytes(config, b)
}

// record writes the bytes of a group, unless an earlier program did, and gives the record's name in its folder.
func (p *payloads) record(g *payloadGroup) (string, error) {
	if path, ok := p.n.written[g.storage]; ok && g.storage != nil {
		return path, nil
	}
	prefix, data := p.n.prefix, []byte(nil)
	if g.object != nil {
		prefix, data = g.object.Form+"_", g.object.Bytes
	} else {
		data = g.storage.Bytes()
	}
	path := fmt.Sprintf("%s%d", prefix, p.n.next)
	p.n.next++
	if g.storage != nil {
		p.n.written[g.storage] = path
	}
	return path, p.w.WriteBytes(p.n.dir+path, data)
}
