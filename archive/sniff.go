package archive

import "bytes"

// FileKind is what a file looks like.
type FileKind string

// The kinds that people hand to a PT2 loader by mistake.
const (
	KindZip         FileKind = "a zip file"
	KindPickle      FileKind = "a Python pickle (a legacy torch.save checkpoint)"
	KindONNX        FileKind = "an ONNX model"
	KindSafetensors FileKind = "a safetensors file"
	KindLFS         FileKind = "a Git LFS pointer"
	KindHTML        FileKind = "a web page"
	KindELF         FileKind = "a shared library"
	KindGzip        FileKind = "a gzip file"
	KindEmpty       FileKind = "empty"
	KindUnknown     FileKind = "no file type that this library knows"
)

// Sniff guesses from a file's first bytes what it is.
func Sniff(head []byte) FileKind {
	switch {
	case len(head) == 0:
		return KindEmpty
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return KindZip
	case bytes.HasPrefix(head, []byte("\x80\x02")), bytes.HasPrefix(head, []byte("\x80\x04")), bytes.HasPrefix(head, []byte("\x80\x05")):
		return KindPickle
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return KindLFS
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return KindELF
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return KindGzip
	case len(head) > 9 && head[8] == '{' && bytes.Equal(head[3:8], make([]byte, 5)):
		return KindSafetensors
	case bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(head)), []byte("<!doctype html")), bytes.HasPrefix(bytes.TrimSpace(head), []byte("<html")):
		return KindHTML
	case len(head) > 2 && head[0] == 0x08 && bytes.Contains(head[:min(len(head), 200)], []byte("pytorch")), bytes.Contains(head[:min(len(head), 64)], []byte("onnx")):
		return KindONNX
	}
	return KindUnknown
}

// Advice says what to do with a file that is no PT2 archive.
func (k FileKind) Advice() string {
	s := "the file is " + string(k)
	switch k {
	case KindZip:
		return s + " that is cut off; fetch it again"
	case KindPickle:
		return s + ", which holds weights but no program: export the model with torch.export.export and torch.export.save"
	case KindONNX:
		return s + ": export the model from PyTorch with torch.export.save instead of torch.onnx.export"
	case KindSafetensors:
		return s + ", which holds weights but no program: export the model with torch.export.save, then load these weights into it"
	case KindLFS:
		return s + ": run \"git lfs pull\" to fetch the file itself"
	case KindHTML:
		return s + ": the download went wrong"
	}
	return s
}

// Describe says what a zip file that is no PT2 archive of programs is, for error messages.
func (r *Reader) Describe() string {
	switch {
	case r.CountPrefix(AOTInductorDir) > 0:
		return "an AOTInductor package: it holds code compiled for one machine; save the program itself with torch.export.save"
	case r.Has("constants.pkl") || r.CountPrefix("code/") > 0:
		return "a TorchScript file: export the model with torch.export.export and torch.export.save"
	case r.Has("data.pkl"):
		return "a torch.save checkpoint, which holds weights but no program: export the model with torch.export.export and torch.export.save"
	case r.CountPrefix(ExecuTorchDir) > 0:
		return "an archive of ExecuTorch programs only: save the exported program with torch.export.save"
	}
	return "a zip file without an exported program"
}
