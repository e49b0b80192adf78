package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// blockLen is the number of elements that a pointwise kernel handles at once: a few operands stay in the first-level cache.
const blockLen = 1024

// grain is the least number of elements that is worth handing to another worker.
const grain = 16384

// Operand is a tensor in a pointwise loop and the kind in which its blocks are read or written.
type Operand struct {
	T    *tensor.Tensor
	Kind Kind
	// Via is the dtype that an input is rounded to before it is computed with, Invalid for none: float32 numbers that take
	// part in a float16 operation, for instance.
	Via tensor.DType
}

// Loop runs body over all elements of the outputs' shape, block by block: outs and ins are blocks of equal length, in the
// kinds asked for, whatever the tensors' dtypes and strides. Inputs are broadcast. An output may share memory with an input
// only exactly (same dtype, sizes, strides and offset).
func Loop(p *pool.Pool, outs, ins []Operand, body func(outs, ins []Block)) {
	ts := make([]*tensor.Tensor, 0, len(outs)+len(ins))
	for _, o := range outs {
		ts = append(ts, o.T)
	}
	for _, o := range ins {
		ts = append(ts, o.T)
	}
	var shape []int64
	if len(outs) > 0 {
		shape = outs[0].T.Sizes()
	} else {
		shape = ins[0].T.Sizes()
	}
	it := NewIter(shape, ts...)
	if it.N == 0 {
		return
	}
	all := append(append(make([]Operand, 0, len(ts)), outs...), ins...)
	if it.N <= grain {
		newLoop(it, all, len(outs)).run(0, it.N, body)
		return
	}
	p.ParallelFor(int(it.N), grain, func(lo, hi int) {
		newLoop(it, all, len(outs)).run(int64(lo), int64(hi), body)
	})
}

// loopState is one worker's buffers.
type loopState struct {
	it     *Iter
	ops    []Operand
	nout   int
	base   []unsafe.Pointer
	direct []bool   // the operand's own memory serves as the block
	filled []bool   // a constant input whose buffer already holds it
	buf    [][]byte // nil where direct
	blocks []Block
}

func newLoop(it *Iter, ops []Operand, nout int) *loopState {
	n := len(ops)
	l := &loopState{it: it, ops: ops, nout: nout, base: make([]unsafe.Pointer, n), direct: make([]bool, n),
		filled: make([]bool, n), buf: make([][]byte, n), blocks: make([]Block, n)}
	m := int(min(it.N, blockLen))
	for k, o := range ops {
		l.base[k] = base(o.T)
		l.direct[k] = it.contig(k) && o.Kind.native(o.T.DType()) && (o.Kind != KBool || k < nout) && !o.rounds()
		if !l.direct[k] {
			l.buf[k] = tensor.AlignedBytes(m * kindSize[o.Kind])
		}
	}
	return l
}

func (l *loopState) run(lo, hi int64, body func(outs, ins []Block)) {
	for pos := lo; pos < hi; pos += blockLen {
		n := int(min(blockLen, hi-pos))
		for k := range l.ops {
			if l.direct[k] {
				l.blocks[k] = Block{unsafe.Add(l.base[k], pos*int64(kindSize[l.ops[k].Kind])), n}
			} else {
				l.blocks[k] = Block{unsafe.Pointer(&l.buf[k][0]), n}
			}
		}
		for k := l.nout; k < len(l.ops); k++ {
			if !l.direct[k] {
				l.load(k, pos, n)
			}
		}
		body(l.blocks[:l.nout], l.blocks[l.nout:])
		for k := range l.nout {
			if !l.direct[k] {
				l.store(k, pos, n)
			}
		}
	}
}

func (l *loopState) load(k int, pos int64, n int) {
	o, p := l.ops[k], l.blocks[k].p
	dt := o.T.DType()
	if l.it.constant(k) {
		if l.filled[k] {
			return
		}
		l.filled[k] = true
		loadRow(p, o.Kind, l.base[k], dt, 0, len(l.buf[k])/kindSize[o.Kind])
	} else {
		step := l.it.Strides[k][0]
		done := 0
		l.it.Rows(pos, pos+int64(n), func(off []int64, m int64) {
			loadRow(unsafe.Add(p, done*kindSize[o.Kind]), o.Kind, unsafe.Add(l.base[k], off[k]*int64(dt.Size())), dt, step, int(m))
			done += int(m)
		})
	}
	if o.rounds() {
		roundVia(l.buf[k], o)
	}
}

// rounds reports that the elements must be rounded to Via: its kind holds more than its values.
func (o *Operand) rounds() bool {
	if o.Via == tensor.Invalid || o.Via == o.T.DType() {
		return false
	}
	switch o.Via {
	case tensor.Float16, tensor.BFloat16:
		return o.Kind == KF32
	case tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Uint16, tensor.Uint32, tensor.Complex32:
		return true
	}
	return false
}

// roundVia rounds a block in place to the values that a dtype can hold.
func roundVia(buf []byte, o Operand) {
	n := len(buf) / kindSize[o.Kind]
	p := unsafe.Pointer(&buf[0])
	tmp := make([]byte, n*o.Via.Size())
	storeRow(unsafe.Pointer(&tmp[0]), o.Via, 1, p, o.Kind, n)
	loadRow(p, o.Kind, unsafe.Pointer(&tmp[0]), o.Via, 1, n)
}

func (l *loopState) store(k int, pos int64, n int) {
	o, p := l.ops[k], l.blocks[k].p
	dt := o.T.DType()
	step := l.it.Strides[k][0]
	done := 0
	l.it.Rows(pos, pos+int64(n), func(off []int64, m int64) {
		storeRow(unsafe.Add(l.base[k], off[k]*int64(dt.Size())), dt, step, unsafe.Add(p, done*kindSize[o.Kind]), o.Kind, int(m))
		done += int(m)
	})
}

// Copy stores src, broadcast to dst's shape, into dst, casting as PyTorch's copy_ does. The two must not overlap except
// exactly. Conjugate and negative bits are resolved.
func Copy(p *pool.Pool, dst, src *tensor.Tensor) {
	if src.IsConj() != dst.IsConj() || src.IsNeg() != dst.IsNeg() {
		copyBits(p, dst, src)
		return
	}
	sd, dd := src.DType(), dst.DType()
	if sd == dd {
		copySame(p, dst, src)
		return
	}
	if dst.Numel() == 0 {
		return
	}
	k := KindOf(sd)
	if k == KF32 && dd == tensor.Float64 || dd.IsComplex() && !sd.IsComplex() && k != KBool {
		k = KF64
	}
	if k == KC64 && dd == tensor.Complex128 {
		k = KC128
	}
	in := Operand{T: src, Kind: k}
	shape := dst.Sizes()
	it := NewIter(shape, dst, src)
	work := func(lo, hi int64) {
		l := newLoop(it, []Operand{{T: dst, Kind: k}, in}, 1)
		l.direct[0] = false
		if l.buf[0] == nil {
			l.buf[0] = make([]byte, 16)
		}
		for pos := lo; pos < hi; pos += blockLen {
			n := int(min(blockLen, hi-pos))
			if l.direct[1] {
				l.blocks[1] = Block{unsafe.Add(l.base[1], pos*int64(kindSize[k])), n}
			} else {
				l.blocks[1] = Block{unsafe.Pointer(&l.buf[1][0]), n}
				l.load(1, pos, n)
			}
			l.blocks[0] = l.blocks[1]
			l.store(0, pos, n)
		}
	}
	if it.N <= grain {
		work(0, it.N)
		return
	}
	p.ParallelFor(int(it.N), grain, func(lo, hi int) { work(int64(lo), int64(hi)) })
}

// copySame copies elements without looking at them.
func copySame(p *pool.Pool, dst, src *tensor.Tensor) {
	it := NewIter(dst.Sizes(), dst, src)
	if it.N == 0 {
		return
	}
	size := int64(dst.DType().Size())
	d, s := base(dst), base(src)
	if it.contig(0) && it.contig(1) {
		copy(unsafe.Slice((*byte)(d), it.N*size), unsafe.Slice((*byte)(s), it.N*size))
		return
	}
	if t := it.transposed(); t > 0 {
		copyTransposed(p, it, t, d, s, int(size))
		return
	}
	it.shortRows(size)
	row := func(off []int64, n int64) {
		copyRow(unsafe.Add(d, off[0]*size), it.Strides[0][0], unsafe.Add(s, off[1]*size), it.Strides[1][0], n, size)
	}
	if it.N <= grain {
		it.Rows(0, it.N, row)
		return
	}
	p.ParallelFor(int(it.N), grain, func(lo, hi int) { it.Rows(int64(lo), int64(hi), row) })
}

func copyRow(d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n, size int64) {
	if ds == 1 && ss == 1 {
		copy(unsafe.Slice((*byte)(d), n*size), unsafe.Slice((*byte)(s), n*size))
		return
	}
	switch size {
	case 1:
		copyStep[uint8](d, ds, s, ss, n)
	case 2:
		copyStep[uint16](d, ds, s, ss, n)
	case 4:
		copyStep[uint32](d, ds, s, ss, n)
	case 8:
		copyStep[uint64](d, ds, s, ss, n)
	default:
		copyStep[[2]uint64](d, ds, s, ss, n)
	}
}

func copyStep[T any](d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n int64) {
	size := int64(unsafe.Sizeof(*(*T)(d)))
	for i := range n {
		*(*T)(unsafe.Add(d, i*ds*size)) = *(*T)(unsafe.Add(s, i*ss*size))
	}
}

// copyBits copies between tensors whose lazy bits differ.
func copyBits(p *pool.Pool, dst, src *tensor.Tensor) {
	conj, neg := dst.IsConj() != src.IsConj(), dst.IsNeg() != src.IsNeg()
	plainDst, plainSrc := dst.WithBits(false, false), src.WithBits(false, false)
	if !src.DType().IsComplex() {
		conj = false
	}
	if !conj && !neg {
		Copy(p, plainDst, plainSrc)
		return
	}
	k := KindOf(src.DType())
	tmp := tensor.New(src.DType(), src.Sizes()...)
	Loop(p, []Operand{{T: tmp, Kind: k}}, []Operand{{T: plainSrc, Kind: k}}, func(outs, ins []Block) {
		bitsBlock(k, outs[0], ins[0], conj, neg)
	})
	Copy(p, plainDst, tmp)
}

func bitsBlock(k Kind, out, in Block, conj, neg bool) {
	switch k {
	case KC64:
		bitsOf(As[complex64](out), As[complex64](in), conj, neg, func(z complex64) complex64 { return complex(real(z), -imag(z)) })
	case KC128:
		bitsOf(As[complex128](out), As[complex128](in), conj, neg, func(z complex128) complex128 { return complex(real(z), -imag(z)) })
	case KF64:
		bitsOf(As[float64](out), As[float64](in), false, neg, nil)
	case KF32:
		bitsOf(As[float32](out), As[float32](in), false, neg, nil)
	case KI64:
		bitsOf(As[int64](out), As[int64](in), false, neg, nil)
	case KU64:
		bitsOf(As[uint64](out), As[uint64](in), false, neg, nil)
	default:
		bitsOf(As[uint8](out), As[uint8](in), false, false, nil)
	}
}

func bitsOf[T Compute](d, s []T, conj, neg bool, f func(T) T) {
	for i, z := range s {
		if conj {
			z = f(z)
		}
		if neg {
			z = -z
		}
		d[i] = z
	}
}

// itemOf reads the single element of a tensor as a Python number.
func itemOf(t *tensor.Tensor) Scalar {
	t = t.WithBits(false, false)
	dt, p := t.DType(), base(t)
	switch {
	case dt == tensor.Bool:
		return BoolS(*(*uint8)(p) != 0)
	case dt.IsInt():
		var v int64
		loadRow(unsafe.Pointer(&v), KI64, p, dt, 1, 1)
		return IntS(v)
	case dt.IsFloat():
		var v float64
		loadRow(unsafe.Pointer(&v), KF64, p, dt, 1, 1)
		return FloatS(v)
	}
	var v complex128
	loadRow(unsafe.Pointer(&v), KC128, p, dt, 1, 1)
	return ComplexS(v)
}

// Item reads the single element of a tensor, which must have exactly one, as a Python number.
func Item(t *tensor.Tensor) (s Scalar, err error) {
	defer guard(nil, &err)
	if t.Numel() != 1 {
		Fail("a Tensor with %d elements cannot be converted to Scalar", t.Numel())
	}
	s = itemOf(t)
	if t.IsConj() {
		s.C = complex(real(s.C), -imag(s.C))
	}
	if t.IsNeg() {
		s.I, s.F, s.C = s.I.Neg(), -s.F, -s.C
	}
	return s, nil
}
