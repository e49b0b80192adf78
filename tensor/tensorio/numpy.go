package tensorio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/tensor"
)

// numpyTypes are NumPy's type codes; it has none for bfloat16 and the 8-bit floats.
var numpyTypes = map[string]tensor.DType{"|b1": tensor.Bool, "|u1": tensor.Uint8, "|i1": tensor.Int8, "<i2": tensor.Int16, "<i4": tensor.Int32,
	"<i8": tensor.Int64, "<u2": tensor.Uint16, "<u4": tensor.Uint32, "<u8": tensor.Uint64, "<f2": tensor.Float16, "<f4": tensor.Float32,
	"<f8": tensor.Float64, "<c8": tensor.Complex64, "<c16": tensor.Complex128}

var npyHeader = regexp.MustCompile(`^\{\s*'descr':\s*'([^']+)',\s*'fortran_order':\s*(True|False),\s*'shape':\s*\(([0-9, ]*)\)\s*,?\s*\}\s*$`)

// ParseNPY reads a .npy file (NumPy's format versions 1 to 3). The tensor may point into b.
func ParseNPY(b []byte) (*tensor.Tensor, error) {
	if len(b) < 12 || !bytes.HasPrefix(b, []byte("\x93NUMPY")) {
		return nil, errorf("not a .npy file")
	}
	start, n := 10, int(binary.LittleEndian.Uint16(b[8:]))
	if b[6] >= 2 {
		start, n = 12, int(binary.LittleEndian.Uint32(b[8:]))
	}
	if n < 0 || n > len(b)-start {
		return nil, errorf("the .npy header is cut off")
	}
	m := npyHeader.FindStringSubmatch(string(b[start : start+n]))
	if m == nil {
		return nil, errorf(".npy header %q is not understood", b[start:start+n])
	}
	dt, ok := numpyTypes[m[1]]
	if !ok {
		return nil, errorf(".npy type %q is not supported", m[1])
	}
	var sizes []int64
	for _, s := range strings.Split(m[3], ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, errorf(".npy shape (%s)", m[3])
		}
		sizes = append(sizes, v)
	}
	data := b[start+n:]
	if m[2] == "False" {
		return fromRaw(dt, sizes, data)
	}
	rev := make([]int64, len(sizes))
	for i, s := range sizes {
		rev[len(sizes)-1-i] = s
	}
	t, err := fromRaw(dt, rev, data)
	if err != nil {
		return nil, err
	}
	strides := make([]int64, len(sizes))
	for i, s := range t.Strides() {
		strides[len(sizes)-1-i] = s
	}
	return t.WithView(sizes, strides, t.Offset()), nil
}

// EncodeNPY writes a .npy file of version 1.
func EncodeNPY(t *tensor.Tensor) ([]byte, error) {
	if err := plain(t); err != nil {
		return nil, err
	}
	code := ""
	for c, dt := range numpyTypes {
		if dt == t.DType() {
			code = c
		}
	}
	if code == "" {
		return nil, errorf("NumPy has no %v; convert it first, or write .safetensors or .pt", t.DType())
	}
	var shape strings.Builder
	for _, s := range t.Sizes() {
		fmt.Fprintf(&shape, "%d, ", s)
	}
	s := strings.TrimSuffix(shape.String(), " ")
	if t.Dim() > 1 {
		s = strings.TrimSuffix(s, ",")
	}
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", code, s)
	pad := 64 - (10+len(h)+1)%64
	h += strings.Repeat(" ", pad%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(h)), byte(len(h)>>8))
	return append(append(out, h...), raw(t)...), nil
}

// ParseNPZ reads a .npz file, stored or compressed.
func ParseNPZ(b []byte) (*Dict, error) {
	r, err := archive.NewBytes(b, archive.Options{NoRoot: true})
	if err != nil {
		return nil, err
	}
	d := &Dict{}
	for _, name := range r.Names() {
		c, err := r.ReadBytes(name)
		if err != nil {
			return nil, err
		}
		t, err := ParseNPY(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.Keys = append(d.Keys, strings.TrimSuffix(name, ".npy"))
		d.Values = append(d.Values, t)
	}
	return d, nil
}

// EncodeNPZ writes named tensors as a .npz file.
func EncodeNPZ(d *Dict) ([]byte, error) {
	var buf bytes.Buffer
	w := archive.NewPlainWriter(&buf)
	for i, k := range d.Keys {
		t, ok := d.Values[i].(*tensor.Tensor)
		if !ok {
			return nil, errorf(".npz entry %v is a %T, not a tensor", k, d.Values[i])
		}
		b, err := EncodeNPY(t)
		if err != nil {
			return nil, err
		}
		if err := w.WriteBytes(fmt.Sprint(k)+".npy", b); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}
