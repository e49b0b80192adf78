package schema

import "errors"

// Current is the version of the schema that this package's types describe and that it writes.
var Current = SchemaVersion{Major: 8, Minor: 20}

// Options say how to decode. The zero value reads whatever PyTorch reads.
type Options struct {
	// Strict makes fields that the schema does not know an error, instead of keeping them.
	Strict bool
	// MaxBytes bounds the size of a text; default 1 GiB.
	MaxBytes int64
}

func decode[T any](b []byte, c codec[T], opts Options) (*T, error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = 1 << 30
	}
	r := newReader(b, opts.Strict)
	if int64(len(b)) > opts.MaxBytes {
		r.fail("the text has %d bytes, the limit is %d", len(b), opts.MaxBytes)
		return nil, r.err
	}
	v := new(T)
	c.dec(r, v)
	r.end()
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

func encode[T any](v *T, c codec[T]) ([]byte, error) {
	if v == nil {
		return nil, errors.New("schema: nothing to encode")
	}
	w := &writer{}
	c.enc(w, v)
	if w.err != nil {
		return nil, w.err
	}
	return w.b, nil
}

// Decode reads a program of any version since PyTorch 2.1 and brings it into the current schema; SchemaVersion keeps the version
// of the text. A newer major version is a *[VersionError], anything malformed an *[Error].
func Decode(b []byte, opts Options) (*ExportedProgram, error) {
	have, err := PeekVersion(b)
	if err != nil {
		return nil, err
	}
	if have.Major > Current.Major {
		return nil, &VersionError{have, Current}
	}
	up, err := upgradeText(b, have, opts)
	if err != nil {
		return nil, err
	}
	p, err := decode(up, exportedProgramC, opts)
	if err != nil {
		return nil, err
	}
	p.SchemaVersion.Major, p.SchemaVersion.Minor = have.Major, have.Minor
	return p, nil
}

// Encode writes a program as PyTorch does: one line, fields in schema order.
func Encode(p *ExportedProgram) ([]byte, error) { return encode(p, exportedProgramC) }

// DecodeConfig reads a weights or constants config.
func DecodeConfig(b []byte, opts Options) (*PayloadConfig, error) {
	return decode(b, payloadConfigC, opts)
}

// EncodeConfig writes a weights or constants config.
func EncodeConfig(c *PayloadConfig) ([]byte, error) { return encode(c, payloadConfigC) }

// DecodeTensorMeta reads the description of one tensor.
func DecodeTensorMeta(b []byte, opts Options) (*TensorMeta, error) {
	return decode(b, tensorMetaC, opts)
}

// DecodeExternKernelNodes reads the fallback calls of a compiled model.
func DecodeExternKernelNodes(b []byte, opts Options) (*ExternKernelNodes, error) {
	return decode(b, externKernelNodesC, opts)
}

// EncodeExternKernelNodes writes the fallback calls of a compiled model.
func EncodeExternKernelNodes(n *ExternKernelNodes) ([]byte, error) {
	return encode(n, externKernelNodesC)
}

// DecodeAOTInductorData reads the description of a compiled model.
func DecodeAOTInductorData(b []byte, opts Options) (*AOTInductorModelPickleData, error) {
	return decode(b, aotInductorDataC, opts)
}

// EncodeAOTInductorData writes the description of a compiled model.
func EncodeAOTInductorData(d *AOTInductorModelPickleData) ([]byte, error) {
	return encode(d, aotInductorDataC)
}

// PeekVersion finds the schema version of a program without decoding it: {"major": 8, "minor": 20}, or the bare number that
// PyTorch 2.1 and 2.2 wrote.
func PeekVersion(b []byte) (SchemaVersion, error) {
	r := newReader(b, false)
	var v SchemaVersion
	found, first := false, true
	if r.enter('{') {
		for r.more(&first, '}') {
			k := string(r.key())
			if k != "schema_version" {
				r.leap()
			} else {
				found = true
				if r.next() == '{' {
					schemaVersionC.dec(r, &v)
				} else {
					v.Major = r.int()
				}
			}
			if r.under(k) {
				return v, r.err
			}
		}
	}
	if r.err == nil && !found {
		r.fail("ExportedProgram has no field %q: is this a program?", "schema_version")
	}
	if r.err != nil {
		return v, r.err
	}
	return v, nil
}
