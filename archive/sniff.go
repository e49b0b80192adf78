package archive

import "bytes"

// FileKind is what a file looks like.
type FileKind string

// The kinds that people hand to a PT2 loader by mistake.
const (
	KindZip         FileKind = "a zip file"
	KindPickle      FileKind = "a Python pickle or a torch.save file of PyTorch before 1.6"
	KindONNX        FileKind = "an ONNX model"
	KindSafetensors FileKind = "a safetensors file"
	KindGGUF        FileKind = "a GGUF file"
	KindHDF5        FileKind = "an HDF5 file (Keras writes such)"
	KindTFLite      FileKind = "a TensorFlow Lite model"
	KindExecuTorch  FileKind = "an ExecuTorch program"
	KindNPY         FileKind = "a NumPy array"
	KindLFS         FileKind = "a Git LFS pointer"
	KindHTML        FileKind = "a web page"
	KindJSON        FileKind = "JSON text"
	KindELF         FileKind = "a shared library"
	KindTar         FileKind = "a tar archive"
	KindGzip        FileKind = "a gzip file"
	KindZstd        FileKind = "a zstd file"
	KindEmpty       FileKind = "empty"
	KindUnknown     FileKind = "no file type that this library knows"
)

// magics are bytes that a kind of file has at a fixed place.
var magics = []struct {
	at    int
	bytes string
	kind  FileKind
}{
	{0, "PK\x03\x04", KindZip},
	{0, "PK\x05\x06", KindZip},
	{0, "\x80\x02", KindPickle},
	{0, "\x80\x03", KindPickle},
	{0, "\x80\x04", KindPickle},
	{0, "\x80\x05", KindPickle},
	{0, "version https://git-lfs", KindLFS},
	{0, "\x7fELF", KindELF},
	{0, "\x1f\x8b", KindGzip},
	{0, "\x28\xb5\x2f\xfd", KindZstd},
	{0, "GGUF", KindGGUF},
	{0, "\x89HDF\r\n", KindHDF5},
	{0, "\x93NUMPY", KindNPY},
	{4, "TFL3", KindTFLite},
	{4, "ET12", KindExecuTorch},
	{257, "ustar", KindTar},
	{2, "\x00\x00\x00\x00\x00\x00{\"", KindSafetensors},
	{3, "\x00\x00\x00\x00\x00{\"", KindSafetensors},
	{4, "\x00\x00\x00\x00{\"", KindSafetensors},
}

// Sniff guesses from a file's first bytes what it is.
func Sniff(head []byte) FileKind {
	if len(head) == 0 {
		return KindEmpty
	}
	for _, m := range magics {
		if len(head) > m.at && bytes.HasPrefix(head[m.at:], []byte(m.bytes)) {
			return m.kind
		}
	}
	text := bytes.ToLower(bytes.TrimLeft(head[:min(len(head), 1024)], "\ufeff \t\r\n"))
	switch {
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")):
		return KindHTML
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		return KindJSON
	case isONNX(head):
		return KindONNX
	}
	return KindUnknown
}

// isONNX looks for the start of an ONNX ModelProto: field 1 (ir_version), a small number, then field 2 (producer_name, text),
// 7 (graph) or 8 (opset_import).
func isONNX(head []byte) bool {
	return len(head) > 4 && head[0] == 0x08 && head[1] > 0 && head[1] < 0x20 && (head[2] == 0x12 || head[2] == 0x3a || head[2] == 0x42)
}

// Advice says what the file is and what to do with a file that is no PT2 archive.
func (k FileKind) Advice() string {
	const export = "export the model with torch.export.export and torch.export.save"
	s := "the file is " + string(k)
	switch k {
	case KindZip:
		return s + " that is cut off; fetch it again"
	case KindPickle:
		return s + ", which holds weights but no program: " + export
	case KindONNX:
		return s + ": export the model from PyTorch with torch.export.save instead of torch.onnx.export"
	case KindSafetensors, KindGGUF, KindHDF5, KindNPY:
		return s + ", which holds weights but no program of PyTorch: " + export + ", then load weights into it"
	case KindTFLite, KindExecuTorch:
		return s + ", which is compiled for another runtime: " + export
	case KindELF:
		return s + ", perhaps one compiled by AOTInductor: " + export
	case KindLFS:
		return s + ": run \"git lfs pull\" to fetch the file itself"
	case KindHTML:
		return s + ": the download went wrong"
	case KindTar, KindGzip, KindZstd:
		return s + ": unpack it first"
	case KindJSON:
		return s + ": a PT2 archive is a zip that holds such text; pass the whole archive"
	}
	return s
}

// Describe says what a zip file that is no PT2 archive of programs is, for error messages.
func (r *Reader) Describe() string {
	const export = "export the model with torch.export.export and torch.export.save"
	switch {
	case r.CountPrefix(AOTInductorDir) > 0:
		return "an AOTInductor package: it holds code compiled for one machine; save the program itself with torch.export.save"
	case r.CountPrefix(ExecuTorchDir) > 0:
		return "an archive of ExecuTorch programs only: save the exported program with torch.export.save"
	case r.Has("constants.pkl") || r.CountPrefix("code/") > 0:
		return "a TorchScript file: " + export
	case r.Has("data.pkl"):
		return "a torch.save checkpoint, which holds weights but no program: " + export
	case r.CountPrefix(".data/") > 0:
		return "a zip file of PyTorch without an exported program"
	}
	return "a zip file without an exported program"
}
