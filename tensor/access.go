package tensor

import "fmt"

// elementOffset gives the storage offset of the i-th element in row-major order.
func (t *Tensor) elementOffset(i int64) int64 {
	off := t.offset
	for d := len(t.sizes) - 1; d >= 0; d-- {
		off += i % t.sizes[d] * t.strides[d]
		i /= t.sizes[d]
	}
	return off
}

// Float reads the i-th element in row-major order as a float64; complex elements give their real part.
func (t *Tensor) Float(i int64) float64 {
	re, _ := t.element(t.elementOffset(i))
	return re
}

// Floats reads all elements in row-major order. It is for inspection and small results; complex tensors are refused.
func (t *Tensor) Floats() ([]float64, error) {
	if t.dtype.IsComplex() {
		return nil, fmt.Errorf("tensor: %v has no real values", t.dtype)
	}
	out := make([]float64, t.Numel())
	for i := range out {
		out[i] = t.Float(int64(i))
	}
	return out, nil
}

func (t *Tensor) element(off int64) (re, im float64) {
	p := &Tensor{storage: t.storage, dtype: t.dtype, offset: off}
	switch t.dtype {
	case Bool, Uint8:
		re = float64(Data[uint8](p)[0])
	case Int8:
		re = float64(Data[int8](p)[0])
	case Int16:
		re = float64(Data[int16](p)[0])
	case Int32:
		re = float64(Data[int32](p)[0])
	case Int64:
		re = float64(Data[int64](p)[0])
	case Uint16:
		re = float64(Data[uint16](p)[0])
	case Uint32:
		re = float64(Data[uint32](p)[0])
	case Uint64:
		re = float64(Data[uint64](p)[0])
	case Float16:
		re = float64(F16ToF32(Data[uint16](p)[0]))
	case BFloat16:
		re = float64(BF16ToF32(Data[uint16](p)[0]))
	case Float32:
		re = float64(Data[float32](p)[0])
	case Float64:
		re = Data[float64](p)[0]
	case Complex32:
		v := Data[uint32](p)[0]
		re, im = float64(F16ToF32(uint16(v))), float64(F16ToF32(uint16(v>>16)))
	case Complex64:
		v := Data[complex64](p)[0]
		re, im = float64(real(v)), float64(imag(v))
	case Complex128:
		v := Data[complex128](p)[0]
		re, im = real(v), imag(v)
	default:
		re = float64(F8Table(t.dtype)[Data[uint8](p)[0]])
	}
	if t.conj {
		im = -im
	}
	if t.neg {
		re, im = -re, -im
	}
	return re, im
}

// SetFloat stores v into the i-th element in row-major order, rounding or truncating to the dtype.
func (t *Tensor) SetFloat(i int64, v float64) error {
	p := &Tensor{storage: t.storage, dtype: t.dtype, offset: t.elementOffset(i)}
	switch t.dtype {
	case Bool:
		Data[uint8](p)[0] = map[bool]uint8{true: 1}[v != 0]
	case Uint8:
		Data[uint8](p)[0] = uint8(int64(v))
	case Int8:
		Data[int8](p)[0] = int8(int64(v))
	case Int16:
		Data[int16](p)[0] = int16(int64(v))
	case Int32:
		Data[int32](p)[0] = int32(int64(v))
	case Int64:
		Data[int64](p)[0] = int64(v)
	case Uint16:
		Data[uint16](p)[0] = uint16(int64(v))
	case Uint32:
		Data[uint32](p)[0] = uint32(int64(v))
	case Uint64:
		Data[uint64](p)[0] = uint64(v)
	case Float16:
		Data[uint16](p)[0] = F32ToF16(float32(v))
	case BFloat16:
		Data[uint16](p)[0] = F32ToBF16(float32(v))
	case Float32:
		Data[float32](p)[0] = float32(v)
	case Float64:
		Data[float64](p)[0] = v
	case Complex64:
		Data[complex64](p)[0] = complex(float32(v), 0)
	case Complex128:
		Data[complex128](p)[0] = complex(v, 0)
	default:
		return fmt.Errorf("tensor: %v cannot be set from a float", t.dtype)
	}
	return nil
}
