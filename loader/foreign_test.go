package loader

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pt2go/pt2/archive"
)

// The error for a file of another kind says what it is and what to do. The files of testdata/foreign were made by PyTorch.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "hello", "page.html": "<!DOCTYPE html><html>404</html>", "cut.pt2": "PK\x03\x04 and no more",
		"pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{
		"testdata/foreign/torchscript.pt":      {"a TorchScript file", "torch.export.save"},
		"testdata/foreign/checkpoint.pt":       {"a torch.save checkpoint", "weights but no program", "torch.export.save"},
		"testdata/foreign/module.pt":           {"a torch.save checkpoint", "torch.export.save"},
		"testdata/foreign/checkpoint-old.pt":   {"torch.save file of PyTorch before 1.6", "torch.export.save"},
		"testdata/foreign/weights.safetensors": {"a safetensors file", "weights but no program", "torch.export.save"},
		"testdata/foreign/aotinductor.pt2":     {"an AOTInductor package", "compiled for one machine", "torch.export.save"},
		"testdata/foreign/model.onnx":          {"an ONNX model", "torch.export.save instead of torch.onnx.export"},
		dir + "/empty":                         {"the file is empty"},
		dir + "/text":                          {"no file type that this library knows"},
		dir + "/page.html":                     {"a web page", "the download went wrong"},
		dir + "/cut.pt2":                       {"cut off", "fetch it again"},
		dir + "/pointer":                       {"Git LFS pointer", "git lfs pull"},
		dir:                                    {"a folder", "the archive file itself"},
	} {
		_, err := Open(path, Options{})
		if err == nil || !errors.Is(err, archive.ErrNotPT2) {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nwant %q", path, err, w)
			}
		}
	}
	if _, err := Open(filepath.Join(dir, "none"), Options{}); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, archive.ErrNotPT2) {
		t.Errorf("no file: %v", err)
	}
	if _, err := OpenFS(os.DirFS(dir), ".", Options{}); err == nil {
		t.Error("a folder of a file system was opened")
	}
}
