package archive

// Names of records relative to the root folder.
const (
	FormatPath        = "archive_format"
	FormatValue       = "pt2"
	VersionPath       = "archive_version"
	VersionValue      = "0"
	ModelsDir         = "models/"
	WeightsDir        = "data/weights/"
	ConstantsDir      = "data/constants/"
	SampleInputsDir   = "data/sample_inputs/"
	AOTInductorDir    = "data/aotinductor/"
	ExecuTorchDir     = "data/executorch/"
	ExtraDir          = "extra/"
	LegacyProgramPath = "serialized_exported_program.json"
	LegacyVersionPath = "version"
	LegacyExtraDir    = "extra_files/"
)
