package loader

import (
	"strings"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/export"
)

// containerRecords are those that every writer makes anew.
var containerRecords = map[string]bool{archive.FormatPath: true, archive.VersionPath: true, ".data/version": true, ".data/serialization_id": true,
	"byteorder": true, archive.LegacyVersionPath: true, archive.LegacyProgramPath: true, "serialized_state_dict.pt": true,
	"serialized_state_dict.json": true, "serialized_constants.pt": true, "serialized_constants.json": true, "serialized_example_inputs.pt": true}

// Package gives all parts of the archive for [PackagePT2]: programs, extra files, compiled models, and records that have no
// meaning here, which keep their names. Weights stay views of the file, so write before Close.
func (c *Contents) Package() (*Package, error) {
	pkg := &Package{Programs: map[string]*export.Program{}, AOTI: map[string][]File{}, ExtraFiles: c.ExtraFiles, Order: c.r.Names()}
	for name, p := range c.Programs {
		pkg.Programs[name] = p
	}
	for _, name := range c.r.Names() {
		if c.isProgramRecord(name) || containerRecords[name] || strings.HasPrefix(name, archive.ExtraDir) || strings.HasPrefix(name, archive.LegacyExtraDir) {
			continue
		}
		b, err := c.r.ReadBytes(name)
		if err != nil {
			return nil, err
		}
		if rest, ok := strings.CutPrefix(name, archive.AOTInductorDir); ok {
			if model, file, ok := strings.Cut(rest, "/"); ok {
				pkg.AOTI[model] = append(pkg.AOTI[model], File{file, b})
				continue
			}
		}
		if rest, ok := strings.CutPrefix(name, archive.ExecuTorchDir); ok {
			pkg.ExecuTorch = append(pkg.ExecuTorch, File{rest, b})
			continue
		}
		pkg.Other = append(pkg.Other, File{name, b})
	}
	return pkg, nil
}

// isProgramRecord reports a record that saving the programs writes anew.
func (c *Contents) isProgramRecord(name string) bool {
	for _, dir := range []string{archive.ModelsDir, archive.WeightsDir, archive.ConstantsDir, archive.SampleInputsDir} {
		if rest, ok := strings.CutPrefix(name, dir); ok {
			return !c.belongsToAOTI(dir, rest)
		}
	}
	return false
}

// belongsToAOTI reports a weight or constant that no program's config names: one of a compiled model.
func (c *Contents) belongsToAOTI(dir, record string) bool {
	if len(c.AOTInductor) == 0 || dir != archive.WeightsDir && dir != archive.ConstantsDir || strings.HasSuffix(record, ".json") {
		return false
	}
	return !c.payloads[dir+record]
}
