package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// Kind is a type in which pointwise operators compute. Each dtype has one: the 16- and 8-bit floats compute in float32,
// complex32 in complex64, integers in int64 (storing wraps modulo their width, as two's complement does), uint64 in uint64.
type Kind uint8

// The kinds, with the Go type of a block's elements.
const (
	KBool Kind = iota // uint8, 0 or 1
	KI64              // int64
	KU64              // uint64
	KF32              // float32
	KF64              // float64
	KC64              // complex64
	KC128             // complex128
)

var kindSize = [...]int{1, 8, 8, 4, 8, 8, 16}

// KindOf gives the kind in which dt computes.
func KindOf(dt tensor.DType) Kind {
	switch dt {
	case tensor.Bool:
		return KBool
	case tensor.Uint64:
		return KU64
	case tensor.Float64:
		return KF64
	case tensor.Complex32, tensor.Complex64:
		return KC64
	case tensor.Complex128:
		return KC128
	}
	if dt.IsInt() {
		return KI64
	}
	return KF32
}

// native reports that a block of the kind has the dtype's own memory layout.
func (k Kind) native(dt tensor.DType) bool {
	switch k {
	case KBool:
		return dt == tensor.Bool
	case KI64:
		return dt == tensor.Int64
	case KU64:
		return dt == tensor.Uint64
	case KF32:
		return dt == tensor.Float32
	case KF64:
		return dt == tensor.Float64
	case KC64:
		return dt == tensor.Complex64
	}
	return dt == tensor.Complex128
}

// Compute is a Go type of one of the kinds.
type Compute interface {
	uint8 | int64 | uint64 | float32 | float64 | complex64 | complex128
}

// Block is a run of elements in a compute kind, without gaps.
type Block struct {
	p unsafe.Pointer
	n int
}

// As gives the elements of a block; T must be the Go type of its kind.
func As[T Compute](b Block) []T { return unsafe.Slice((*T)(b.p), b.n) }

// number is what casts convert between.
type number interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// loadRow reads n elements of dt at src, step elements apart, into dst of the given kind.
func loadRow(dst unsafe.Pointer, k Kind, src unsafe.Pointer, dt tensor.DType, step int64, n int) {
	if step == 1 && k != KBool && k.native(dt) {
		size := n * kindSize[k]
		copy(unsafe.Slice((*byte)(dst), size), unsafe.Slice((*byte)(src), size))
		return
	}
	switch dt {
	case tensor.Bool:
		loadBool(dst, k, src, step, n)
	case tensor.Uint8:
		loadNum[uint8](dst, k, src, step, n)
	case tensor.Int8:
		loadNum[int8](dst, k, src, step, n)
	case tensor.Int16:
		loadNum[int16](dst, k, src, step, n)
	case tensor.Int32:
		loadNum[int32](dst, k, src, step, n)
	case tensor.Int64:
		loadNum[int64](dst, k, src, step, n)
	case tensor.Uint16:
		loadNum[uint16](dst, k, src, step, n)
	case tensor.Uint32:
		loadNum[uint32](dst, k, src, step, n)
	case tensor.Uint64:
		loadNum[uint64](dst, k, src, step, n)
	case tensor.Float32:
		loadNum[float32](dst, k, src, step, n)
	case tensor.Float64:
		loadNum[float64](dst, k, src, step, n)
	case tensor.Float16, tensor.BFloat16:
		loadHalf(dst, k, src, dt, step, n)
	case tensor.Complex32:
		loadC32(dst, k, src, step, n)
	case tensor.Complex64:
		loadComplex[complex64](dst, k, src, step, n)
	case tensor.Complex128:
		loadComplex[complex128](dst, k, src, step, n)
	default:
		loadF8(dst, k, src, tensor.F8Table(dt), step, n)
	}
}

func at[S any](p unsafe.Pointer, i int64) S {
	return *(*S)(unsafe.Add(p, uintptr(i)*unsafe.Sizeof(*(*S)(p))))
}

func loadNum[S number](dst unsafe.Pointer, k Kind, src unsafe.Pointer, step int64, n int) {
	switch k {
	case KBool:
		d := unsafe.Slice((*uint8)(dst), n)
		for i := range d {
			d[i] = b2u(at[S](src, int64(i)*step) != 0)
		}
	case KI64:
		convRow[S, int64](dst, src, step, n)
	case KU64:
		convRow[S, uint64](dst, src, step, n)
	case KF32:
		convRow[S, float32](dst, src, step, n)
	case KF64:
		convRow[S, float64](dst, src, step, n)
	case KC64:
		d := unsafe.Slice((*complex64)(dst), n)
		for i := range d {
			d[i] = complex(float32(at[S](src, int64(i)*step)), 0)
		}
	default:
		d := unsafe.Slice((*complex128)(dst), n)
		for i := range d {
			d[i] = complex(float64(at[S](src, int64(i)*step)), 0)
		}
	}
}

func convRow[S, D number](dst, src unsafe.Pointer, step int64, n int) {
	d := unsafe.Slice((*D)(dst), n)
	if step == 1 {
		s := unsafe.Slice((*S)(src), n)
		for i, v := range s {
			d[i] = D(v)
		}
		return
	}
	for i := range d {
		d[i] = D(at[S](src, int64(i)*step))
	}
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// loadBool reads bytes that a hostile file may have set to anything but 0 and 1.
func loadBool(dst unsafe.Pointer, k Kind, src unsafe.Pointer, step int64, n int) {
	var buf [256]uint8
	for n > 0 {
		m := min(n, len(buf))
		for i := range m {
			buf[i] = b2u(at[uint8](src, int64(i)*step) != 0)
		}
		loadNum[uint8](dst, k, unsafe.Pointer(&buf), 1, m)
		dst = unsafe.Add(dst, m*kindSize[k])
		n -= m
		if n > 0 {
			src = unsafe.Add(src, int64(m)*step)
		}
	}
}

func loadHalf(dst unsafe.Pointer, k Kind, src unsafe.Pointer, dt tensor.DType, step int64, n int) {
	var buf [256]float32
	for n > 0 {
		m := min(n, len(buf))
		halfRow(buf[:m], src, dt, step)
		loadNum[float32](dst, k, unsafe.Pointer(&buf), 1, m)
		dst = unsafe.Add(dst, m*kindSize[k])
		n -= m
		if n > 0 {
			src = unsafe.Add(src, int64(m)*step*2)
		}
	}
}

func halfRow(dst []float32, src unsafe.Pointer, dt tensor.DType, step int64) {
	if step == 1 && len(dst) > 0 {
		widen := cpu.F16ToF32
		if dt == tensor.BFloat16 {
			widen = cpu.BF16ToF32
		}
		widen(dst, unsafe.Slice((*uint16)(src), len(dst)))
		return
	}
	if dt == tensor.BFloat16 {
		for i := range dst {
			dst[i] = tensor.BF16ToF32(at[uint16](src, int64(i)*step))
		}
		return
	}
	for i := range dst {
		dst[i] = tensor.F16ToF32(at[uint16](src, int64(i)*step))
	}
}

func loadF8(dst unsafe.Pointer, k Kind, src unsafe.Pointer, table *[256]float32, step int64, n int) {
	for i := range n {
		v := table[at[uint8](src, int64(i)*step)]
		loadNum[float32](unsafe.Add(dst, i*kindSize[k]), k, unsafe.Pointer(&v), 1, 1)
	}
}

func loadC32(dst unsafe.Pointer, k Kind, src unsafe.Pointer, step int64, n int) {
	for i := range n {
		h := at[[2]uint16](src, int64(i)*step)
		v := complex(tensor.F16ToF32(h[0]), tensor.F16ToF32(h[1]))
		loadComplex[complex64](unsafe.Add(dst, i*kindSize[k]), k, unsafe.Pointer(&v), 1, 1)
	}
}

// loadComplex drops the imaginary part for real kinds; a complex is true if either part is not 0.
func loadComplex[S complex64 | complex128](dst unsafe.Pointer, k Kind, src unsafe.Pointer, step int64, n int) {
	for i := range n {
		v := complex128(at[S](src, int64(i)*step))
		switch k {
		case KBool:
			*(*uint8)(unsafe.Add(dst, i)) = b2u(v != 0)
		case KI64:
			*(*int64)(unsafe.Add(dst, i*8)) = int64(real(v))
		case KU64:
			*(*uint64)(unsafe.Add(dst, i*8)) = uint64(real(v))
		case KF32:
			*(*float32)(unsafe.Add(dst, i*4)) = float32(real(v))
		case KF64:
			*(*float64)(unsafe.Add(dst, i*8)) = real(v)
		case KC64:
			*(*complex64)(unsafe.Add(dst, i*8)) = complex64(v)
		default:
			*(*complex128)(unsafe.Add(dst, i*16)) = v
		}
	}
}

// storeRow writes n elements of kind k at src to dst of dtype dt, step elements apart. The kind is the one of dt, or KBool
// for any dtype, or one that casts exactly as PyTorch's copy does (see [Copy] for float to integer).
func storeRow(dst unsafe.Pointer, dt tensor.DType, step int64, src unsafe.Pointer, k Kind, n int) {
	if step == 1 && k != KBool && k.native(dt) {
		size := n * kindSize[k]
		copy(unsafe.Slice((*byte)(dst), size), unsafe.Slice((*byte)(src), size))
		return
	}
	switch k {
	case KBool:
		storeNum[uint8](dst, dt, step, src, n)
	case KI64:
		storeNum[int64](dst, dt, step, src, n)
	case KU64:
		storeNum[uint64](dst, dt, step, src, n)
	case KF32:
		storeNum[float32](dst, dt, step, src, n)
	case KF64:
		storeNum[float64](dst, dt, step, src, n)
	case KC64:
		storeComplex[complex64](dst, dt, step, src, n)
	default:
		storeComplex[complex128](dst, dt, step, src, n)
	}
}

func storeComplex[S complex64 | complex128](dst unsafe.Pointer, dt tensor.DType, step int64, src unsafe.Pointer, n int) {
	s := unsafe.Slice((*S)(src), n)
	for i, v := range s {
		c := complex128(v)
		p := unsafe.Add(dst, int64(i)*step*int64(dt.Size()))
		switch dt {
		case tensor.Complex32:
			*(*[2]uint16)(p) = [2]uint16{tensor.F32ToF16(float32(real(c))), tensor.F32ToF16(float32(imag(c)))}
		case tensor.Complex64:
			*(*complex64)(p) = complex64(c)
		case tensor.Complex128:
			*(*complex128)(p) = c
		case tensor.Bool:
			*(*uint8)(p) = b2u(c != 0)
		default:
			re := real(c)
			storeNum[float64](p, dt, 1, unsafe.Pointer(&re), 1)
		}
	}
}

func putRow[S, D number](dst unsafe.Pointer, step int64, src []S) {
	if step == 1 {
		d := unsafe.Slice((*D)(dst), len(src))
		for i, v := range src {
			d[i] = D(v)
		}
		return
	}
	for i, v := range src {
		*(*D)(unsafe.Add(dst, uintptr(int64(i)*step)*unsafe.Sizeof(D(0)))) = D(v)
	}
}

// putSmall stores into an integer of at most 32 bits by way of int32 or int64, as x86 conversions do: values that do not
// fit a wider integer give its minimum, the rest wraps.
func putSmall[S, D number](dst unsafe.Pointer, step int64, src []S, via32 bool) {
	for i, v := range src {
		*(*D)(unsafe.Add(dst, uintptr(int64(i)*step)*unsafe.Sizeof(D(0)))) = D(toInt(v, via32))
	}
}

// toInt truncates a float as cvttss2si does; integers pass.
func toInt[S number](v S, via32 bool) int64 {
	f := float64(v)
	if S(1)/S(2) == 0 { // an integer type
		return int64(v)
	}
	lim := float64(1 << 63)
	if via32 {
		lim = 1 << 31
	}
	if f != f || f >= lim || f < -lim {
		if via32 && (f != f || f >= lim || f <= -lim-1) {
			return -1 << 31
		}
		if !via32 {
			return -1 << 63
		}
	}
	return int64(f)
}

func storeNum[S number](dst unsafe.Pointer, dt tensor.DType, step int64, src unsafe.Pointer, n int) {
	s := unsafe.Slice((*S)(src), n)
	isFloat := S(1)/S(2) != 0
	switch dt {
	case tensor.Bool:
		for i, v := range s {
			*(*uint8)(unsafe.Add(dst, int64(i)*step)) = b2u(v != 0)
		}
	case tensor.Uint8:
		putSmall[S, uint8](dst, step, s, isFloat)
	case tensor.Int8:
		putSmall[S, int8](dst, step, s, isFloat)
	case tensor.Int16:
		putSmall[S, int16](dst, step, s, isFloat)
	case tensor.Uint16:
		putSmall[S, uint16](dst, step, s, isFloat)
	case tensor.Int32:
		putSmall[S, int32](dst, step, s, isFloat)
	case tensor.Uint32:
		putSmall[S, uint32](dst, step, s, false)
	case tensor.Int64:
		if isFloat {
			putSmall[S, int64](dst, step, s, false)
			return
		}
		putRow[S, int64](dst, step, s)
	case tensor.Uint64:
		putRow[S, uint64](dst, step, s)
	case tensor.Float32:
		putRow[S, float32](dst, step, s)
	case tensor.Float64:
		putRow[S, float64](dst, step, s)
	case tensor.Float16, tensor.BFloat16:
		if f, ok := any(s).([]float32); ok && step == 1 && n > 0 {
			narrow := cpu.F32ToF16
			if dt == tensor.BFloat16 {
				narrow = cpu.F32ToBF16
			}
			narrow(unsafe.Slice((*uint16)(dst), n), f)
			return
		}
		if dt == tensor.BFloat16 {
			for i, v := range s {
				*(*uint16)(unsafe.Add(dst, int64(i)*step*2)) = tensor.F32ToBF16(float32(v))
			}
			return
		}
		for i, v := range s {
			*(*uint16)(unsafe.Add(dst, int64(i)*step*2)) = tensor.F32ToF16(float32(v))
		}
	case tensor.Complex32:
		for i, v := range s {
			*(*[2]uint16)(unsafe.Add(dst, int64(i)*step*4)) = [2]uint16{tensor.F32ToF16(float32(v))}
		}
	case tensor.Complex64:
		for i, v := range s {
			*(*complex64)(unsafe.Add(dst, int64(i)*step*8)) = complex(float32(v), 0)
		}
	case tensor.Complex128:
		for i, v := range s {
			*(*complex128)(unsafe.Add(dst, int64(i)*step*16)) = complex(float64(v), 0)
		}
	default:
		for i, v := range s {
			*(*uint8)(unsafe.Add(dst, int64(i)*step)) = tensor.F32ToF8(dt, float32(v))
		}
	}
}

// base is the address of a tensor's first element; nil for an empty one.
func base(t *tensor.Tensor) unsafe.Pointer {
	b := t.Storage().Bytes()
	off := int(t.Offset()) * t.DType().Size()
	if off >= len(b) {
		return nil
	}
	return unsafe.Pointer(&b[off])
}
