// Package loader turns archives of every PyTorch version since 2.1 into programs: container, JSON, weights and constants
// together. Weights are views of the file where it is mapped.
package loader

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
)

// Options configure loading. The zero value is the default.
type Options struct {
	Archive archive.Options
	// Registry resolves operators; nil takes the built-in ones.
	Registry *aten.Registry
	Schema   schema.Options
	// ExpectedOpset, where it names an operator set, must equal what the program records.
	ExpectedOpset map[string]int
	// AllowAnyDialect accepts programs of dialects other than ATEN and TRAINING; of those only the structure is checked.
	AllowAnyDialect bool
	// AllowAnyOpset accepts programs of a newer aten operator set than this library knows.
	AllowAnyOpset bool
}

// Contents are the parts of an archive (PT2ArchiveContents). Tensors may point into the mapped file: use them only until Close.
type Contents struct {
	Programs   map[string]*export.Program
	ExtraFiles map[string]string
	// AOTInductor and ExecuTorch list the names of parts that this library carries but does not run.
	AOTInductor, ExecuTorch []string

	r        *archive.Reader
	payloads map[string]bool // records that a program's config names
}

// Close gives the file back.
func (c *Contents) Close() error { return c.r.Close() }

// Archive is the container, for the records that have no meaning here.
func (c *Contents) Archive() *archive.Reader { return c.r }

// Names lists the programs, sorted.
func (c *Contents) Names() []string {
	var out []string
	for n := range c.Programs {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// Program finds a program by name. "" means "model", or the only one.
func (c *Contents) Program(name string) (*export.Program, error) {
	if name == "" {
		if p := c.Programs["model"]; p != nil {
			return p, nil
		}
		if len(c.Programs) == 1 {
			return c.Programs[c.Names()[0]], nil
		}
		return nil, fmt.Errorf("loader: the archive has programs %s; name one", strings.Join(c.Names(), ", "))
	}
	if p := c.Programs[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("loader: no program %q; the archive has %s", name, strings.Join(c.Names(), ", "))
}

// Open loads the archive at path, mapped.
func Open(path string, opts Options) (*Contents, error) {
	r, err := archive.Open(path, opts.Archive)
	if err != nil {
		return nil, err
	}
	return finish(r, opts)
}

// OpenBytes loads an archive in memory; tensors point into b.
func OpenBytes(b []byte, opts Options) (*Contents, error) {
	r, err := archive.NewBytes(b, opts.Archive)
	if err != nil {
		return nil, err
	}
	return finish(r, opts)
}

// OpenReader loads an archive through an io.ReaderAt.
func OpenReader(src io.ReaderAt, size int64, opts Options) (*Contents, error) {
	r, err := archive.NewReader(src, size, opts.Archive)
	if err != nil {
		return nil, err
	}
	return finish(r, opts)
}

// OpenFS loads an archive from a file system.
func OpenFS(fsys fs.FS, name string, opts Options) (*Contents, error) {
	r, err := archive.OpenFS(fsys, name, opts.Archive)
	if err != nil {
		return nil, err
	}
	return finish(r, opts)
}

func finish(r *archive.Reader, opts Options) (c *Contents, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loader: internal error: %v", p)
		}
		if err != nil {
			r.Close()
			c = nil
		}
	}()
	if opts.Registry == nil {
		opts.Registry = aten.Builtin()
	}
	c = &Contents{Programs: map[string]*export.Program{}, ExtraFiles: map[string]string{}, r: r}
	l := &loading{r: r, opts: opts, storages: map[string]*tensor.Storage{}, named: map[string]bool{}}
	c.payloads = l.named
	switch {
	case r.IsPT2():
		err = l.current(c)
	case r.Has(archive.LegacyProgramPath):
		err = l.legacy(c)
	default:
		err = fmt.Errorf("loader: the file is %s: %w", r.Describe(), archive.ErrNotPT2)
	}
	return c, err
}

type loading struct {
	r        *archive.Reader
	opts     Options
	storages map[string]*tensor.Storage // by record
	named    map[string]bool            // records that a program's config names
}

// current reads the layout of PyTorch 2.8 and later.
func (l *loading) current(c *Contents) error {
	v, err := l.r.Version()
	if err != nil {
		return err
	}
	if v != archive.VersionValue {
		return &archive.FormatError{Record: archive.VersionPath, Msg: fmt.Sprintf("saved archive version %s does not match %s, the one this library reads", v, archive.VersionValue), Kind: archive.ErrFormat}
	}
	for _, name := range l.r.Names() {
		switch {
		case strings.HasPrefix(name, archive.ModelsDir) && strings.HasSuffix(name, ".json"):
			model := strings.TrimSuffix(strings.TrimPrefix(name, archive.ModelsDir), ".json")
			p, err := l.program(model, name)
			if err != nil {
				return fmt.Errorf("program %s: %w", model, err)
			}
			c.Programs[model] = p
		case strings.HasPrefix(name, archive.ExtraDir):
			if c.ExtraFiles[strings.TrimPrefix(name, archive.ExtraDir)], err = l.r.ReadString(name); err != nil {
				return err
			}
		case strings.HasPrefix(name, archive.AOTInductorDir):
			c.AOTInductor = append(c.AOTInductor, name)
		case strings.HasPrefix(name, archive.ExecuTorchDir):
			c.ExecuTorch = append(c.ExecuTorch, name)
		}
	}
	if len(c.Programs) == 0 {
		return fmt.Errorf("loader: the file is %s: %w", l.r.Describe(), archive.ErrNotPT2)
	}
	return nil
}

// legacy reads the layout of PyTorch 2.1 to 2.7.
func (l *loading) legacy(c *Contents) error {
	p, err := l.program("model", archive.LegacyProgramPath)
	if err != nil {
		return err
	}
	c.Programs["model"] = p
	for _, name := range l.r.Names() {
		if rest, ok := strings.CutPrefix(name, archive.LegacyExtraDir); ok {
			if c.ExtraFiles[rest], err = l.r.ReadString(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// program reads one program with its weights, constants and example inputs.
func (l *loading) program(model, record string) (*export.Program, error) {
	b, err := l.r.ReadBytes(record)
	if err != nil {
		return nil, err
	}
	src, err := schema.Decode(b, l.opts.Schema)
	if err != nil {
		return nil, fmt.Errorf("loader: record %s: %w", record, err)
	}
	if err := l.checkOpset(src.OpsetVersion); err != nil {
		return nil, err
	}
	for _, d := range src.Verifiers {
		if _, err := export.VerifierByDialect(d); err != nil && !l.opts.AllowAnyDialect {
			return nil, fmt.Errorf("loader: the program names a dialect that this library does not verify: %w; allow any dialect to load it unverified", err)
		}
	}
	gm := &src.GraphModule
	parts := export.Parts{
		State: &export.OrderedMap[*tensor.Tensor]{}, Constants: &export.OrderedMap[any]{},
		Verifiers: src.Verifiers, GuardsCode: src.GuardsCode, OpsetVersion: map[string]int{}, TorchVersion: src.TorchVersion,
		SchemaVersion: export.Version{Major: int(src.SchemaVersion.Major), Minor: int(src.SchemaVersion.Minor)},
		Metadata:      map[string]string{}, NamedTuples: map[string][]string{}, RequiresGrad: map[string]bool{}, IsParameter: map[string]bool{}, Devices: map[string]aten.Device{}, Blank: map[string]*export.TensorMeta{},
		LegacyUnbounded: src.SchemaVersion.Major > 0 && src.SchemaVersion.Major <= 2,
	}
	for _, e := range src.OpsetVersion {
		parts.OpsetVersion[e.Key] = int(e.Value)
	}
	for _, e := range gm.Metadata {
		parts.Metadata[e.Key] = e.Value
	}
	for _, e := range gm.TreespecNamedtupleFields {
		parts.NamedTuples[e.Key] = e.Value.FieldNames
	}
	conv := newConverter(l.opts.Registry)
	if err := l.state(model, gm, &parts, conv); err != nil {
		return nil, err
	}
	if err := convertParts(conv, src, &parts); err != nil {
		return nil, err
	}
	l.examples(model, &parts)
	return export.New(parts)
}

// knownOpset is the newest version of the "aten" operator set that this library knows.
const knownOpset = 10

// checkOpset holds the recorded operator sets against what the caller expects and what this library knows.
func (l *loading) checkOpset(have schema.Map[int64]) error {
	for set, want := range l.opts.ExpectedOpset {
		if v, _ := have.Get(set); v != int64(want) {
			return &schema.OpsetError{Name: set, Have: v, Want: int64(want), Exact: true}
		}
	}
	if v, _ := have.Get("aten"); v > knownOpset && !l.opts.AllowAnyOpset {
		return &schema.OpsetError{Name: "aten", Have: v, Want: knownOpset}
	}
	return nil
}

func convertParts(conv *converter, src *schema.ExportedProgram, parts *export.Parts) (err error) {
	gm := &src.GraphModule
	if parts.Graph, err = conv.graph(&gm.Graph, gm.Signature.InputSpecs); err != nil {
		return err
	}
	if parts.Signature, err = convertSignature(&gm.Signature); err != nil {
		return err
	}
	describeConstants(parts)
	describeParameters(parts)
	for _, r := range src.RangeConstraints {
		parts.RangeConstraints = append(parts.RangeConstraints, export.Range{Expr: r.Key, Min: r.Value.Min, Max: r.Value.Max})
	}
	for i := range gm.ModuleCallGraph {
		e := &gm.ModuleCallGraph[i]
		entry := export.ModuleCallEntry{FQN: e.FQN}
		if s := e.Signature; s != nil {
			sig := &export.ModuleCallSignature{InSpec: s.InSpec, OutSpec: s.OutSpec, ForwardArgNames: s.ForwardArgNames}
			if sig.Inputs, err = argsOf(s.Inputs); err == nil {
				sig.Outputs, err = argsOf(s.Outputs)
			}
			if err != nil {
				return &ProgramError{fmt.Sprintf("module_call_graph[%d] (%s)", i, e.FQN), err.Error()}
			}
			entry.Signature = sig
		}
		parts.ModuleCallGraph = append(parts.ModuleCallGraph, entry)
	}
	return nil
}

// describeParameters takes what parameters want gradients from the graph, for files whose weights do not say so themselves.
func describeParameters(parts *export.Parts) {
	for i := range min(len(parts.Signature.Inputs), len(parts.Graph.Inputs)) {
		spec, v := &parts.Signature.Inputs[i], parts.Graph.Inputs[i].Value
		if _, known := parts.RequiresGrad[spec.Target]; spec.Kind == export.Parameter && !known && v != nil && v.Tensor != nil {
			parts.RequiresGrad[spec.Target] = v.Tensor.RequiresGrad
			describeTied(parts, spec.Target)
		}
	}
}

// describeTied marks the other names of a parameter.
func describeTied(parts *export.Parts, target string) {
	p, ok := parts.State.Get(target)
	if !ok {
		return
	}
	for name, t := range parts.State.All() {
		if t.Storage() == p.Storage() && t.DType() == p.DType() && t.Offset() == p.Offset() && slices.Equal(t.Sizes(), p.Sizes()) && slices.Equal(t.Strides(), p.Strides()) {
			parts.IsParameter[name], parts.RequiresGrad[name] = true, parts.RequiresGrad[target]
		}
	}
}

// describeConstants gives the lifted constants of PyTorch 2.1, which has no metadata for them, that of their tensors.
func describeConstants(parts *export.Parts) {
	for i := range min(len(parts.Signature.Inputs), len(parts.Graph.Inputs)) {
		spec, v := &parts.Signature.Inputs[i], parts.Graph.Inputs[i].Value
		if spec.Kind != export.ConstantTensor || v == nil || v.Tensor != nil {
			continue
		}
		if c, ok := parts.Constants.Get(spec.Target); ok {
			if t, ok := c.(*tensor.Tensor); ok {
				m := aten.MetaOf(t)
				v.Tensor = &export.TensorMeta{DType: m.DType, Sizes: m.Sizes, Strides: m.Strides, Device: aten.Device{Type: "cpu", Index: -1}, Layout: aten.StridedLayout}
			}
		}
	}
}

// state reads weights and constants in whichever form the archive has.
func (l *loading) state(model string, gm *schema.GraphModule, parts *export.Parts, conv *converter) error {
	if l.r.Has(archive.LegacyProgramPath) {
		if err := l.pickled(first(l.r, "serialized_state_dict.pt", "serialized_state_dict.json"), func(k string, t *tensor.Tensor) { parts.State.Set(k, t) }); err != nil {
			return err
		}
		if rec := first(l.r, "serialized_constants.pt", "serialized_constants.json"); rec != "" {
			if err := l.pickled(rec, func(k string, t *tensor.Tensor) { parts.Constants.Set(k, t) }); err != nil {
				return err
			}
		}
		return graphConstants(&gm.Graph, parts)
	}
	set := func(k string, t *tensor.Tensor) { parts.State.Set(k, t) }
	if rec := archive.WeightsDir + model + ".pt"; l.r.Has(rec) {
		if err := l.pickled(rec, set); err != nil {
			return err
		}
	} else if err := l.payloads(archive.WeightsDir, first(l.r, archive.WeightsDir+model+"_weights_config.json", archive.WeightsDir+model+"_model_param_config.json"), conv, parts, true); err != nil {
		return err
	}
	if rec := archive.ConstantsDir + model + ".pt"; l.r.Has(rec) {
		return l.pickled(rec, func(k string, t *tensor.Tensor) { parts.Constants.Set(k, t) })
	}
	return l.payloads(archive.ConstantsDir, first(l.r, archive.ConstantsDir+model+"_constants_config.json", archive.ConstantsDir+model+"_model_constants_config.json"), conv, parts, false)
}

func first(r *archive.Reader, names ...string) string {
	for _, n := range names {
		if r.Has(n) {
			return n
		}
	}
	return ""
}

// pickled reads a torch.save file of a dict of tensors.
func (l *loading) pickled(record string, set func(string, *tensor.Tensor)) error {
	if record == "" {
		return nil
	}
	b, err := l.r.ReadBytes(record)
	if err != nil {
		return err
	}
	v, err := l.torchFile(b)
	if err != nil {
		return fmt.Errorf("loader: record %s: %w", record, err)
	}
	d, ok := v.(*tensorio.Dict)
	if !ok {
		return &ProgramError{record, fmt.Sprintf("holds a %T, want a dict of tensors", v)}
	}
	for i, k := range d.Keys {
		name, ok1 := k.(string)
		t, ok2 := d.Values[i].(*tensor.Tensor)
		if !ok1 || !ok2 {
			return &ProgramError{record, fmt.Sprintf("entry %v is a %T, want a tensor", k, d.Values[i])}
		}
		set(name, t)
	}
	return nil
}

func (l *loading) torchFile(b []byte) (any, error) {
	r, err := archive.NewBytes(b, l.opts.Archive)
	if err != nil {
		return nil, err
	}
	return tensorio.ReadPT(r, true)
}

// graphConstants reads the constants that PyTorch 2.1 wrote into the graph.
func graphConstants(g *schema.Graph, parts *export.Parts) error {
	constants, err := g.InlineConstants()
	if err != nil {
		return err
	}
	for _, c := range constants {
		name := c.Key
		b, err := base64.StdEncoding.DecodeString(c.Value)
		if err != nil {
			return &ProgramError{"graph.constants." + name, err.Error()}
		}
		v, err := tensorio.ParsePT(b)
		if err != nil {
			return &ProgramError{"graph.constants." + name, err.Error()}
		}
		t, ok := v.(*tensor.Tensor)
		if !ok {
			return &ProgramError{"graph.constants." + name, fmt.Sprintf("is a %T, want a tensor", v)}
		}
		parts.Constants.Set(name, t)
	}
	return nil
}

// payloads reads raw weights or constants by their config.
func (l *loading) payloads(dir, config string, conv *converter, parts *export.Parts, weights bool) error {
	if config == "" {
		return nil
	}
	b, err := l.r.ReadBytes(config)
	if err != nil {
		return err
	}
	c, err := schema.DecodeConfig(b, l.opts.Schema)
	if err != nil {
		return fmt.Errorf("loader: record %s: %w", config, err)
	}
	for i := range c.Config {
		name, p := c.Config[i].Key, &c.Config[i].Value
		l.named[dir+p.PathName] = true
		if p.TensorMeta == nil {
			obj, err := l.custom(dir, p)
			if err != nil {
				return err
			}
			conv.customs[name] = true
			parts.Constants.Set(name, obj)
			continue
		}
		t, err := l.payload(dir, name, p, conv, parts)
		if err != nil {
			return err
		}
		parts.RequiresGrad[name] = p.TensorMeta.RequiresGrad
		if p.IsParam {
			parts.IsParameter[name] = true
		}
		if d := deviceOf(p.TensorMeta.Device); d.Type != "cpu" || d.Index >= 0 {
			parts.Devices[name] = d
		}
		if weights {
			parts.State.Set(name, t)
		} else {
			parts.Constants.Set(name, t)
		}
	}
	return nil
}

func (l *loading) custom(dir string, p *schema.PayloadMeta) (*export.CustomObject, error) {
	b, err := l.r.ReadBytes(dir + p.PathName)
	if err != nil {
		return nil, err
	}
	form := "opaque_obj"
	if strings.HasPrefix(p.PathName, "custom_obj_") {
		form = "custom_obj"
	}
	return &export.CustomObject{Form: form, Bytes: b}, nil
}

// payload is one weight: a strided view of its record, which holds the whole storage.
func (l *loading) payload(dir, name string, p *schema.PayloadMeta, conv *converter, parts *export.Parts) (*tensor.Tensor, error) {
	record := dir + p.PathName
	m, err := conv.meta(p.TensorMeta)
	if err != nil {
		return nil, &ProgramError{name, err.Error()}
	}
	if m.Layout != aten.StridedLayout && m.Layout != 0 {
		return nil, &ProgramError{name, fmt.Sprintf("layout %d is not strided; sparse weights are not supported", m.Layout)}
	}
	if p.UsePickle {
		return l.pickledPayload(record, name)
	}
	sizes, strides := aten.Int64s(m.Sizes), aten.Int64s(m.Strides)
	st := l.storages[record]
	if st == nil {
		b, err := l.r.ReadBytes(record)
		if err != nil {
			return nil, err
		}
		if len(b)%m.DType.Size() != 0 {
			return nil, &ProgramError{name, fmt.Sprintf("record %s has %d bytes, no multiple of an element of %v", record, len(b), m.DType)}
		}
		if n, err := tensor.Numel(sizes); len(b) == 0 && (err != nil || n > 0) {
			parts.Blank[name] = m
			return emptyPayload(name, m.DType, sizes)
		}
		st = tensorio.Wrap(b, m.DType, true)
		l.storages[record] = st
	}
	t, err := tensor.View(st, m.DType, sizes, strides, m.Offset.Int64())
	if err != nil {
		return nil, fmt.Errorf("loader: %s (record %s): %w", name, record, err)
	}
	return t, nil
}

// smallZeros is up to how many bytes an empty record is given memory of its own.
const smallZeros = 1 << 12

// emptyPayload serves a record of length 0: zeros, which PyTorch allows for tensors without elements and for fake ones. Large ones
// are one zero seen many times, so that a small file cannot claim much memory.
func emptyPayload(name string, dt tensor.DType, sizes []int64) (*tensor.Tensor, error) {
	n, err := tensor.Numel(sizes)
	if err != nil {
		return nil, fmt.Errorf("loader: %s: %w", name, err)
	}
	if n <= smallZeros/int64(dt.Size()) {
		return tensor.New(dt, sizes...), nil
	}
	return tensor.View(tensor.NewStorage(dt.Size()), dt, sizes, make([]int64, len(sizes)), 0)
}

func (l *loading) pickledPayload(record, name string) (*tensor.Tensor, error) {
	b, err := l.r.ReadBytes(record)
	if err != nil {
		return nil, err
	}
	v, err := l.torchFile(b)
	if err != nil {
		return nil, fmt.Errorf("loader: %s (record %s) is pickled, so a tensor subclass or the like; run_decompositions() before saving makes plain tensors of it: %w", name, record, err)
	}
	t, ok := v.(*tensor.Tensor)
	if !ok {
		return nil, &ProgramError{name, fmt.Sprintf("record %s holds a %T, want a tensor", record, v)}
	}
	return t, nil
}

// examples reads the recorded example inputs. What cannot be read without running foreign code is not available.
func (l *loading) examples(model string, parts *export.Parts) {
	rec := first(l.r, archive.SampleInputsDir+model+".pt", "serialized_example_inputs.pt")
	if rec == "" {
		return
	}
	b, err := l.r.ReadBytes(rec)
	if err != nil || len(b) == 0 {
		return
	}
	parts.ExampleRecord = b
	v, err := l.torchFile(b)
	if err != nil {
		return
	}
	pair, ok := v.(tensorio.Tuple)
	if !ok || len(pair) != 2 {
		return
	}
	args, ok1 := pair[0].(tensorio.Tuple)
	kwargs, ok2 := pair[1].(*tensorio.Dict)
	if !ok1 || !ok2 {
		return
	}
	ex := &export.Example{Args: args}
	for i, k := range kwargs.Keys {
		name, _ := k.(string)
		ex.Kwargs = append(ex.Kwargs, export.KwExample{Name: name, Value: kwargs.Values[i]})
	}
	parts.ExampleInputs = ex
}

// IsNotPT2 reports an error for a file that is no PT2 archive at all.
func IsNotPT2(err error) bool { return errors.Is(err, archive.ErrNotPT2) }
