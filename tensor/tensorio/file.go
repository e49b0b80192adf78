package tensorio

import (
	"os"
	"path/filepath"

	"github.com/pt2go/pt2/internal/newfile"
	"github.com/pt2go/pt2/tensor"
)

// Load reads a file by its suffix. .npy gives a *tensor.Tensor, .npz and .safetensors a *Dict of names to tensors, .pt what
// [LoadPT] gives, .json nested lists of numbers as described at [ParseJSON].
func Load(path string) (any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, errorf("%w", err)
	}
	switch ext := filepath.Ext(path); ext {
	case ".pt", ".pth":
		return ParsePT(b)
	case ".npy":
		return ParseNPY(b)
	case ".npz":
		return ParseNPZ(b)
	case ".safetensors":
		return ParseSafetensors(b)
	case ".json":
		return ParseJSON(b)
	default:
		return nil, errorf("%s: suffix %q; want .pt, .npy, .npz, .safetensors or .json", path, ext)
	}
}

// Save writes a file by its suffix, in the forms that [Load] gives.
func Save(path string, v any) error {
	var b []byte
	var err error
	switch ext := filepath.Ext(path); ext {
	case ".pt", ".pth":
		return SavePT(path, v)
	case ".npy":
		t, ok := v.(*tensor.Tensor)
		if !ok {
			return errorf("%s holds one tensor, got a %T", path, v)
		}
		b, err = EncodeNPY(t)
	case ".npz", ".safetensors":
		d, ok := v.(*Dict)
		if !ok {
			return errorf("%s holds named tensors, got a %T", path, v)
		}
		if ext == ".npz" {
			b, err = EncodeNPZ(d)
		} else {
			b, err = EncodeSafetensors(d)
		}
	case ".json":
		b, err = EncodeJSON(v)
	default:
		return errorf("%s: suffix %q; want .pt, .npy, .npz, .safetensors or .json", path, ext)
	}
	if err != nil {
		return err
	}
	if err := newfile.Write(path, b); err != nil {
		return errorf("%w", err)
	}
	return nil
}

// plain refuses lazily conjugated and negated tensors: their elements are not what lies in memory, and only .pt has a place for
// the bits. What a model returns never has them.
func plain(t *tensor.Tensor) error {
	if t.IsConj() || t.IsNeg() {
		return errorf("a lazily conjugated or negated tensor has no form in this file; write .pt")
	}
	return nil
}

// raw gives the elements of a tensor row by row, as bytes.
func raw(t *tensor.Tensor) []byte {
	size := t.DType().Size()
	n := int(t.Numel())
	if t.IsContiguous() {
		off := int(t.Offset()) * size
		if n == 0 {
			return nil
		}
		return t.Storage().Bytes()[off : off+n*size]
	}
	out := make([]byte, 0, n*size)
	idx := make([]int64, t.Dim())
	b := t.Storage().Bytes()
	for range n {
		off := t.Offset()
		for d, i := range idx {
			off += i * t.Strides()[d]
		}
		out = append(out, b[int(off)*size:int(off+1)*size]...)
		for d := len(idx) - 1; d >= 0; d-- {
			if idx[d]++; idx[d] < t.Sizes()[d] {
				break
			}
			idx[d] = 0
		}
	}
	return out
}

// fromRaw makes a contiguous tensor over b after checking its length.
func fromRaw(dt tensor.DType, sizes []int64, b []byte) (*tensor.Tensor, error) {
	n, err := tensor.Numel(sizes)
	if err != nil {
		return nil, errorf("%w", err)
	}
	if n > int64(len(b)) || n*int64(dt.Size()) != int64(len(b)) {
		return nil, errorf("%v of sizes %v has not %d bytes", dt, sizes, len(b))
	}
	return tensor.View(Wrap(b, dt, false), dt, sizes, tensor.ContiguousStrides(sizes), 0)
}
