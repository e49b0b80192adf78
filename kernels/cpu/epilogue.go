package cpu

import (
	"math"
	"unsafe"
)

// Epilogue is what happens to a tile of C when its last products are in: C = act(C + Bias + Residual), or with ActFirst
// C = act(C + Bias) + Residual.
type Epilogue struct {
	// ColBias has one number a column, RowBias one a row; nil for none.
	ColBias, RowBias []float32
	// Residual is added, element by element, rows ResidualStep apart; nil for none. It may be C itself; with
	// ActFirst that takes a copy.
	Residual     []float32
	ResidualStep int
	Act          Activation
	ActFirst     bool
}

// rest is what of an epilogue the kernels leave to be done row by row.
type rest int

const (
	restNone rest = iota
	restAct       // the activation
	restAll
)

// inKernel tells what the kernels do of the epilogue: everything, if the activation is a clamp.
func (ep *Epilogue) inKernel() (flags int, lo, hi float32, r rest) {
	if ep.RowBias != nil {
		return 0, 0, 0, restAll
	}
	clamps := true
	switch ep.Act.Kind {
	case ActReLU:
		hi = float32(math.Inf(1))
	case ActClamp:
		lo, hi = ep.Act.Lo, ep.Act.Hi
	default:
		clamps = false
		if ep.Act.Kind != ActNone {
			if ep.actFirst() {
				return 0, 0, 0, restAll
			}
			r = restAct
		}
	}
	if ep.ColBias != nil {
		flags |= tileBias
	}
	if ep.Residual != nil {
		flags |= tileResidual
	}
	if clamps {
		if ep.actFirst() {
			flags |= tileClampFirst
		} else {
			flags |= tileClamp
		}
	}
	return flags, lo, hi, r
}

// apartFrom is the epilogue with a copy of the residual, if that is C itself.
func (ep *Epilogue) apartFrom(c []float32) (*Epilogue, *buffer[float32]) {
	if ep == nil || ep.Residual == nil || !sameMemory(c, ep.Residual) {
		return ep, nil
	}
	buf := scratch(len(ep.Residual))
	copy(buf.data, ep.Residual)
	e := *ep
	e.Residual = buf.data
	return &e, buf
}

// separate makes a residual that is C itself a C that is added to.
func (ep *Epilogue) separate(c []float32, beta bool) (*Epilogue, bool, *buffer[float32]) {
	if ep == nil || ep.Residual == nil || !sameMemory(c, ep.Residual) {
		return ep, beta, nil
	}
	if beta || ep.actFirst() {
		e, buf := ep.apartFrom(c)
		return e, beta, buf
	}
	e := *ep
	e.Residual = nil
	return &e, true, nil
}

// biasAndClamp splits an epilogue for kernels that add a bias and clamp: rest is what they do not do. zeros stands for no bias.
func (ep *Epilogue) biasAndClamp(zeros []float32) (bias []float32, lo, hi float32, r rest) {
	bias, lo, hi = zeros, float32(math.Inf(-1)), float32(math.Inf(1))
	if ep == nil {
		return bias, lo, hi, restNone
	}
	flags, l, h, r := ep.inKernel()
	if flags&tileResidual != 0 {
		r = restAll
	}
	if r == restAll {
		return bias, lo, hi, r
	}
	if flags&tileBias != 0 {
		bias = ep.ColBias
	}
	if flags&tileClamp != 0 {
		lo, hi = l, h
	}
	return bias, lo, hi, r
}

func (ep *Epilogue) actFirst() bool { return ep.ActFirst && ep.Residual != nil }

// over makes the function that finishes parts of c; nil if there is nothing to do.
func (ep *Epilogue) over(c []float32, ldc int) func(rows, cols [2]int) {
	if ep == nil {
		return nil
	}
	return func(rows, cols [2]int) {
		for i := rows[0]; i < rows[1]; i++ {
			ep.row(c[i*ldc+cols[0]:i*ldc+cols[1]], i, cols[0])
		}
	}
}

// from is the epilogue of a matrix that begins at column j.
func (ep *Epilogue) from(j int) *Epilogue {
	if ep == nil || j == 0 {
		return ep
	}
	e := *ep
	if e.ColBias != nil {
		e.ColBias = e.ColBias[j:]
	}
	if e.Residual != nil {
		e.Residual = e.Residual[j:]
	}
	return &e
}

// repeated is the epilogue of a matrix in whose rows n positions of some columns each follow each other.
func (ep *Epilogue) repeated(n, columns int) *Epilogue {
	if ep == nil {
		return nil
	}
	e := *ep
	if e.ColBias != nil && n > 1 {
		e.ColBias = nil
		for range n {
			e.ColBias = append(e.ColBias, ep.ColBias[:columns]...)
		}
	}
	e.ResidualStep = n * columns
	return &e
}

// at is the epilogue of the rows that begin at an element of C.
func (ep *Epilogue) at(element int) *Epilogue {
	if ep == nil || ep.Residual == nil {
		return ep
	}
	e := *ep
	e.Residual = e.Residual[element:]
	return &e
}

// row applies the epilogue to columns [j, j+len(row)) of row i.
func (ep *Epilogue) row(row []float32, i, j int) {
	if ep.ColBias != nil {
		AddF32(row, row, ep.ColBias[j:])
	}
	if ep.RowBias != nil {
		AddScalarF32(row, row, ep.RowBias[i])
	}
	if ep.actFirst() {
		ep.Act.Apply(row, row)
	}
	if ep.Residual != nil {
		AddF32(row, row, ep.Residual[i*ep.ResidualStep+j:])
	}
	if !ep.actFirst() {
		ep.Act.Apply(row, row)
	}
}

// sameMemory tells whether two slices begin with the same element.
func sameMemory(a, b []float32) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }
