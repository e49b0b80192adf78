package tensorio

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/pt2go/pt2/tensor"
)

// safetensorTypes are the type names of the safetensors format.
var safetensorTypes = map[string]tensor.DType{"BOOL": tensor.Bool, "U8": tensor.Uint8, "I8": tensor.Int8, "I16": tensor.Int16, "U16": tensor.Uint16,
	"F16": tensor.Float16, "BF16": tensor.BFloat16, "I32": tensor.Int32, "U32": tensor.Uint32, "F32": tensor.Float32, "F64": tensor.Float64,
	"I64": tensor.Int64, "U64": tensor.Uint64, "F8_E4M3": tensor.Float8E4M3FN, "F8_E5M2": tensor.Float8E5M2, "F8_E8M0": tensor.Float8E8M0FNU,
	"C64": tensor.Complex64}

type safeEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// ParseSafetensors reads a .safetensors file; tensors may point into b. They come in order of their place in the file.
func ParseSafetensors(b []byte) (*Dict, error) {
	if len(b) < 8 {
		return nil, errorf("not a safetensors file")
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(len(b)-8) {
		return nil, errorf("the safetensors header claims %d bytes", n)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		return nil, errorf("safetensors header: %w", err)
	}
	data := b[8+n:]
	entries := map[string]safeEntry{}
	var names []string
	for name, rawEntry := range header {
		if name == "__metadata__" {
			continue
		}
		var e safeEntry
		if err := json.Unmarshal(rawEntry, &e); err != nil {
			return nil, errorf("safetensors entry %q: %w", name, err)
		}
		entries[name] = e
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := entries[names[i]].Offsets[0], entries[names[j]].Offsets[0]
		return a < b || a == b && names[i] < names[j]
	})
	d := &Dict{}
	for _, name := range names {
		e := entries[name]
		dt, ok := safetensorTypes[e.DType]
		if !ok {
			return nil, errorf("safetensors entry %q has type %q", name, e.DType)
		}
		lo, hi := e.Offsets[0], e.Offsets[1]
		if lo < 0 || hi < lo || hi > int64(len(data)) {
			return nil, errorf("safetensors entry %q lies outside the file", name)
		}
		t, err := fromRaw(dt, e.Shape, data[lo:hi])
		if err != nil {
			return nil, errorf("safetensors entry %q: %w", name, err)
		}
		d.Keys = append(d.Keys, name)
		d.Values = append(d.Values, t)
	}
	return d, nil
}

// EncodeSafetensors writes named tensors as a .safetensors file.
func EncodeSafetensors(d *Dict) ([]byte, error) {
	header := map[string]safeEntry{}
	var data []byte
	for i, k := range d.Keys {
		t, ok := d.Values[i].(*tensor.Tensor)
		if !ok {
			return nil, errorf("safetensors entry %v is a %T, not a tensor", k, d.Values[i])
		}
		if err := plain(t); err != nil {
			return nil, err
		}
		code := ""
		for c, dt := range safetensorTypes {
			if dt == t.DType() {
				code = c
			}
		}
		if code == "" {
			return nil, errorf("the safetensors format has no %v", t.DType())
		}
		b := raw(t)
		sizes := append([]int64{}, t.Sizes()...)
		header[fmt.Sprint(k)] = safeEntry{code, sizes, [2]int64{int64(len(data)), int64(len(data) + len(b))}}
		data = append(data, b...)
	}
	h, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
	return append(append(out, h...), data...), nil
}
