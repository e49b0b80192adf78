package plan

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// pointwiseOp computes a program of element-by-element functions block by block, so that what passes between them stays in the cache.
var pointwiseOp = internal(&aten.Op{
	Schema: "plan::pointwise(Tensor[] x, Program program) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU:    func(k *aten.Kernel) { k.V[1].(*program).run(k) },
})

func init() {
	fusedOps[pointwiseOp] = &fused{overwritable: func(a *aten.Args) []*aten.Value {
		p := a.V[1].(*program)
		var l []*aten.Value
		for i, v := range a.Tensors(0) {
			if p.ins[i].full {
				l = append(l, v)
			}
		}
		return l
	}}
}

// program is a list of steps over float32 registers of one block each. The first registers are the operands.
type program struct {
	steps []step
	ins   []operand
	sizes []int // the result's elements in memory order as a space of some dimensions, innermost first
	n     int   // elements
	block int   // elements computed at once
	temps int   // registers beside the operands'
	out   tensor.DType
}

// step is one function: register dst = body(registers in).
type step struct {
	body *aten.Body
	in   []int
	dst  int // -1: the result
	// dtype is what PyTorch stores the step's result in: 16-bit floats are rounded after each step.
	dtype tensor.DType
}

// operand is an input in the result's memory order.
type operand struct {
	dtype   tensor.DType
	full    bool  // element i of memory belongs to element i of the result
	repeats bool  // every block of whole periods is alike
	strides []int // by dimension of the space
	// The same walk with as few dimensions as this operand needs, innermost first.
	walkSizes, walkSteps []int
}

// String lists the steps: "t0 = mul(x0, x1), sigmoid(t0)".
func (p *program) String() string {
	var b strings.Builder
	name := func(r int) string {
		if r < len(p.ins) {
			return fmt.Sprintf("x%d", r)
		}
		return fmt.Sprintf("t%d", r-len(p.ins))
	}
	for i, s := range p.steps {
		if i > 0 {
			b.WriteString(", ")
		}
		if s.dst >= 0 {
			b.WriteString(name(s.dst) + " = ")
		}
		b.WriteString(s.body.Kind + "(")
		for j, r := range s.in {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(name(r))
		}
		if strings.HasSuffix(s.body.Kind, "_c") || s.body.C != 0 {
			fmt.Fprintf(&b, ", %g", s.body.C)
		}
		b.WriteByte(')')
	}
	return "{" + b.String() + "}"
}

// pointBlock is how many elements of a register are computed at once: a handful of registers stay in the first-level cache.
const pointBlock = 1024

// node is a step of an expression that passes build: operands are nodes, or inputs counted from -1 down.
type node struct {
	body  *aten.Body
	in    []int
	dtype tensor.DType
}

// expression is a pointwise instruction before its program is made: the last node is the result.
type expression struct {
	ins   []*aten.Value
	nodes []node
}

func floatDType(dt tensor.DType) bool { return dt == tensor.Float32 || dt.IsReduced() }

// expressionOf is in as an expression; nil if it cannot run as a program.
func expressionOf(in *Instr) *expression {
	if in.Op == pointwiseOp {
		e, _ := in.Args.V[1].(*expression)
		return e
	}
	if len(in.Outs) != 1 || in.Outs[0] == nil || in.zero {
		return nil
	}
	out := in.Outs[0]
	if !covers(out) || !floatDType(out.DType) || out.Numel().Int64() == 0 {
		return nil
	}
	b := in.Op.Body(in.Args)
	if b == nil {
		return nil
	}
	return newExpression(b, out)
}

func newExpression(b *aten.Body, out *aten.Value) *expression {
	e := &expression{}
	n := node{body: b, dtype: out.DType}
	for i, v := range b.Ins {
		condition := v.DType == tensor.Bool && b.Kind == "where" && i == 0
		if !floatDType(v.DType) && !condition || v.Conj || v.Neg {
			return nil
		}
		st := broadcastStrides(v, out)
		if d := innermost(out); d >= 0 && st[d] > maxGather {
			return nil // a gather: the operator's own kernel does that better
		}
		if b.Kind == "copy" && !sameLayout(v, out) {
			return nil // a transposition
		}
		n.in = append(n.in, e.input(v))
	}
	e.nodes = []node{n}
	return e
}

// input gives the reference to v, which is added if it is new.
func (e *expression) input(v *aten.Value) int {
	for i, x := range e.ins {
		if sameValue(x, v) {
			return -1 - i
		}
	}
	e.ins = append(e.ins, v)
	return -len(e.ins)
}

// sameValue reports that two values look at the same elements in the same way.
func sameValue(a, b *aten.Value) bool {
	if a == b {
		return true
	}
	if a.DType != b.DType || !sameLayout(a, b) || a.Conj != b.Conj || a.Neg != b.Neg {
		return false
	}
	if a.T != nil || b.T != nil {
		return a.T != nil && b.T != nil && a.T.Storage() == b.T.Storage() && a.T.Offset() == b.T.Offset()
	}
	return bufferOf(a) == bufferOf(b) && a.Offset.Eq(b.Offset)
}

// broadcastStrides gives v's stride along each dimension of out, 0 where v is repeated.
func broadcastStrides(v, out *aten.Value) []int64 {
	st := make([]int64, out.Dim())
	for d := range st {
		k := d - (out.Dim() - v.Dim())
		if k >= 0 && v.Sizes[k].Int64() != 1 {
			st[d] = v.Strides[k].Int64()
		}
	}
	return st
}

// memoryOrder lists the dimensions of a dense value that have more than one element, innermost first.
func memoryOrder(v *aten.Value) []int {
	var dims []int
	for d, s := range v.Sizes {
		if s.Int64() > 1 {
			dims = append(dims, d)
		}
	}
	slices.SortStableFunc(dims, func(a, b int) int { return int(v.Strides[a].Int64() - v.Strides[b].Int64()) })
	return dims
}

func innermost(v *aten.Value) int {
	if dims := memoryOrder(v); len(dims) > 0 {
		return dims[0]
	}
	return -1
}

// aligned reports that v has out's sizes and order in memory, without gaps: element for element the same walk.
func aligned(v, out *aten.Value) bool { return sameLayout(v, out) }

// simple reports that every operand is aligned with the result or one number, so that the result's sizes do not matter.
func (e *expression) simple(out *aten.Value) bool {
	for _, v := range e.ins {
		if !aligned(v, out) && v.Numel().Int64() != 1 {
			return false
		}
	}
	return true
}

// transposeOperands is the pass that brings operands of element-by-element instructions that lie crosswise to the result into its
// order: transposing by tiles and then walking straight is faster than reading crosswise.
func (g *graph) transposeOperands() {
	type copied struct {
		from, to *aten.Value
		at       int
	}
	var copies []copied
	for i, in := range g.instrs {
		if len(in.Outs) != 1 || in.Outs[0] == nil || in.zero || !covers(in.Outs[0]) || !floatDType(in.Outs[0].DType) || in.Op.Tags&aten.Pointwise == 0 {
			continue
		}
		out := in.Outs[0]
		b := in.Op.Body(in.Args)
		d := innermost(out)
		if b == nil || b.Kind == "copy" || d < 0 {
			continue
		}
		var a *aten.Args
		for _, v := range b.Ins {
			if v.Conj || v.Neg || v.T != nil || !aten.SameSizes(v.Sizes, out.Sizes) || v.Strides[d].Int64() <= maxGather {
				continue
			}
			k := slices.IndexFunc(in.Args.V, func(x any) bool { return x == any(v) })
			if k < 0 {
				continue
			}
			if a == nil {
				a = &aten.Args{Op: in.Op, V: slices.Clone(in.Args.V)}
			}
			if c := slices.IndexFunc(copies, func(c copied) bool {
				return sameValue(c.from, v) && sameInts(c.to.Strides, out.Strides) && g.stable(v, c.at, i)
			}); c >= 0 {
				a.V[k] = copies[c].to
				continue
			}
			m := v.Meta
			m.Strides = out.Strides
			t := g.fresh(m)
			g.insert(i, &Instr{Op: copyOp, Args: &aten.Args{Op: copyOp, V: []any{v}}, Outs: []*aten.Value{t}})
			copies = append(copies, copied{v, t, i})
			a.V[k] = t
		}
		if a != nil {
			g.set(i, &Instr{Op: in.Op, Args: a, Outs: in.Outs})
		}
	}
}

// fusePointwise is the pass that joins element-by-element instructions: each is made an expression, which takes in the expressions that
// compute its operands where nobody else wants those.
func (g *graph) fusePointwise() {
	for i, in := range g.instrs {
		if in == nil || in.Op == pointwiseOp {
			continue
		}
		e := expressionOf(in)
		if e == nil {
			continue
		}
		g.set(i, pointwiseInstr(e, in.Outs[0]))
		for g.takeIn(i) {
		}
	}
	g.lowerPointwise()
}

func pointwiseInstr(e *expression, out *aten.Value) *Instr {
	return &Instr{Op: pointwiseOp, Args: &aten.Args{Op: pointwiseOp, V: []any{e.ins, e}}, Outs: []*aten.Value{out}}
}

// maxGather is how far apart neighbouring elements of an operand may lie: real and imaginary parts do side by side.
const maxGather = 4

// Bounds of one program.
const (
	maxOperands = 8
	maxSteps    = 24
)

// takeIn merges one operand's expression into the expression at i.
func (g *graph) takeIn(i int) bool {
	e := expressionOf(g.instrs[i])
	out := g.instrs[i].Outs[0]
	for k, v := range e.ins {
		q, qout := g.producer(v)
		if q < 0 || q == i || bufferOf(v).given {
			continue
		}
		p := expressionOf(g.instrs[q])
		if p == nil || len(p.nodes)+len(e.nodes) > maxSteps || len(p.ins)+len(e.ins) > maxOperands || !aligned(v, out) {
			continue
		}
		if !aligned(v, qout) && !p.simple(qout) {
			continue
		}
		only := true
		for _, r := range bufferOf(v).readers {
			only = only && r == i
		}
		if !only || len(reads(g.instrs[i], bufferOf(v))) != 1 || !g.movable(q, i) {
			continue
		}
		if !aligned(v, qout) {
			p = p.viewed(v, qout)
		}
		g.remove(q)
		g.set(i, pointwiseInstr(merge(e, k, p), out))
		return true
	}
	return false
}

// viewed is a simple expression for the result out seen as v, a view of all of it: operands are seen in the same way.
func (e *expression) viewed(v, out *aten.Value) *expression {
	p := &expression{nodes: e.nodes}
	for _, x := range e.ins {
		if aligned(x, out) {
			c := *x
			c.Sizes, c.Strides = v.Sizes, v.Strides
			if x.T != nil {
				c.T = x.T.WithView(aten.Int64s(v.Sizes), aten.Int64s(v.Strides), x.T.Offset())
			}
			x = &c
		}
		p.ins = append(p.ins, x)
	}
	return p
}

// merge puts p in the place of e's input k.
func merge(e *expression, k int, p *expression) *expression {
	m := &expression{}
	for _, n := range p.nodes {
		c := n
		c.in = slices.Clone(n.in)
		for j, r := range n.in {
			if r < 0 {
				c.in[j] = m.input(p.ins[-1-r])
			}
		}
		m.nodes = append(m.nodes, c)
	}
	last := len(m.nodes) - 1
	for _, n := range e.nodes {
		c := n
		c.in = slices.Clone(n.in)
		for j, r := range n.in {
			switch {
			case r == -1-k:
				c.in[j] = last
			case r < 0:
				c.in[j] = m.input(e.ins[-1-r])
			default:
				c.in[j] = r + last + 1
			}
		}
		m.nodes = append(m.nodes, c)
	}
	return m
}

// lowerPointwise makes the programs.
func (g *graph) lowerPointwise() {
	for i, in := range g.instrs {
		if in == nil || in.Op != pointwiseOp {
			continue
		}
		if e, ok := in.Args.V[1].(*expression); ok {
			g.set(i, &Instr{Op: pointwiseOp, Args: &aten.Args{Op: pointwiseOp, V: []any{e.ins, e.lower(in.Outs[0])}}, Outs: in.Outs})
		}
	}
}

// lower makes the program of an expression whose result is out.
func (e *expression) lower(out *aten.Value) *program {
	p := &program{out: out.DType, n: int(out.Numel().Int64())}
	p.space(e, out)
	p.block = pointBlock
	if period := p.period(); period > 0 && period <= 4*pointBlock {
		p.block = max(1, pointBlock/period) * period
	}
	for i := range p.ins {
		o := &p.ins[i]
		o.repeats = !o.full && p.repeats(o)
		o.walk(p.sizes)
	}
	p.assign(e)
	return p
}

// space finds the dimensions that all operands share, merging those that all walk evenly.
func (p *program) space(e *expression, out *aten.Value) {
	strides := make([][]int64, len(e.ins))
	for i, v := range e.ins {
		p.ins = append(p.ins, operand{dtype: v.DType, full: aligned(v, out)})
		strides[i] = make([]int64, out.Dim())
		if v.Numel().Int64() != 1 {
			strides[i] = broadcastStrides(v, out)
		}
	}
	for _, d := range memoryOrder(out) {
		size := int(out.Sizes[d].Int64())
		last := len(p.sizes) - 1
		even := last >= 0
		for i := range p.ins {
			even = even && strides[i][d] == int64(p.ins[i].strides[last]*p.sizes[last])
		}
		if even {
			p.sizes[last] *= size
			continue
		}
		p.sizes = append(p.sizes, size)
		for i := range p.ins {
			p.ins[i].strides = append(p.ins[i].strides, int(strides[i][d]))
		}
	}
	if len(p.sizes) == 0 {
		p.sizes = []int{1}
		for i := range p.ins {
			p.ins[i].strides = []int{0}
		}
	}
}

// walk merges those dimensions of the space that this operand goes through evenly.
func (o *operand) walk(sizes []int) {
	for d, n := range sizes {
		last := len(o.walkSizes) - 1
		switch {
		case last >= 0 && o.strides[d] == o.walkSteps[last]*o.walkSizes[last]:
			o.walkSizes[last] *= n
		default:
			o.walkSizes, o.walkSteps = append(o.walkSizes, n), append(o.walkSteps, o.strides[d])
		}
	}
}

// period is the length after which the operands of the innermost dimension repeat, 0 if there are none or they differ.
func (p *program) period() int {
	for i := range p.ins {
		if o := &p.ins[i]; !o.full && o.strides[0] == 1 && len(p.sizes) > 1 && o.strides[1] == 0 {
			return p.sizes[0]
		}
	}
	return 0
}

// repeats reports that blocks, which begin at multiples of p.block, all look alike to o.
func (p *program) repeats(o *operand) bool {
	period := 1
	for d, s := range o.strides {
		if s != 0 {
			period = 1
			for _, n := range p.sizes[:d+1] {
				period *= n
			}
		}
	}
	return p.block%period == 0
}

// assign orders the steps, and gives each a register that is free.
func (p *program) assign(e *expression) {
	last := make([]int, len(e.nodes))
	for i, n := range e.nodes {
		for _, r := range n.in {
			if r >= 0 {
				last[r] = i
			}
		}
	}
	reg := make([]int, len(e.nodes))
	var free []int
	for i, n := range e.nodes {
		s := step{body: n.body, dtype: n.dtype, dst: -1}
		for _, r := range n.in {
			if r < 0 {
				s.in = append(s.in, -1-r)
				continue
			}
			s.in = append(s.in, reg[r])
			if last[r] == i && !slices.Contains(free, reg[r]) {
				free = append(free, reg[r])
			}
		}
		if i < len(e.nodes)-1 {
			if len(free) == 0 {
				free = append(free, len(p.ins)+p.temps)
				p.temps++
			}
			s.dst, free = free[len(free)-1], free[:len(free)-1]
			reg[i] = s.dst
		}
		p.steps = append(p.steps, s)
	}
}

// blockState is one worker's memory.
type blockState struct {
	mem  []float32
	half []uint16
	bits []uint8
	regs [][]float32 // by register: what the steps read and write
	own  [][]float32 // by operand: where it is gathered; nil where it is read in place
	in   [][]float32 // the operands of one step
}

var blockStates = sync.Pool{New: func() any { return new(blockState) }}

func (p *program) state() *blockState {
	w := blockStates.Get().(*blockState)
	regs := len(p.ins) + p.temps + 1
	if n := regs * p.block; len(w.mem) < n {
		w.mem = make([]float32, n)
	}
	if len(w.regs) < regs {
		w.regs, w.own, w.in = make([][]float32, regs+8), make([][]float32, regs+8), make([][]float32, regs+8)
	}
	if len(w.half) < p.block {
		w.half, w.bits = make([]uint16, p.block), make([]uint8, p.block)
	}
	for r := range regs {
		w.own[r] = w.mem[r*p.block : (r+1)*p.block : (r+1)*p.block]
	}
	return w
}

// run computes the program. Operands and result are those of the plan's instruction.
func (p *program) run(k *aten.Kernel) {
	blocks := (p.n + p.block - 1) / p.block
	if blocks == 1 || k.Pool.Size() == 1 {
		p.blocks(k, 0, blocks)
		return
	}
	k.Pool.ParallelFor(blocks, max(1, handOff/(p.block*p.cost())), func(lo, hi int) { p.blocks(k, lo, hi) })
}

// handOff is how many additions are worth another goroutine.
const handOff = 1 << 15

// cost is what an element takes, in additions.
func (p *program) cost() int {
	n := 0
	for _, s := range p.steps {
		switch s.body.Kind {
		case "exp", "log", "erf", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "mish", "elu", "sin", "cos":
			n += 8
		default:
			n++
		}
	}
	return n
}

// blocks computes blocks [lo, hi).
func (p *program) blocks(k *aten.Kernel, lo, hi int) {
	w := p.state()
	defer blockStates.Put(w)
	ins := k.Tensors(0)
	result := k.Out[0]
	for b := lo; b < hi; b++ {
		i0 := b * p.block
		n := min(p.block, p.n-i0)
		for j := range p.ins {
			w.regs[j] = w.load(p, j, ins[j].T, i0, n, b == lo)
		}
		for t := range p.temps {
			r := len(p.ins) + t
			w.regs[r] = w.own[r][:n]
		}
		for s := range p.steps {
			st := &p.steps[s]
			in := w.in[:len(st.in)]
			for j, r := range st.in {
				in[j] = w.regs[r][:n]
			}
			switch {
			case st.dst >= 0:
				st.body.Run(w.regs[st.dst], in)
				roundTo(st.dtype, w.regs[st.dst], w.half)
			case p.out == tensor.Float32:
				st.body.Run(tensor.Data[float32](result)[i0:i0+n:i0+n], in)
			default:
				dst := w.own[len(p.ins)+p.temps][:n]
				st.body.Run(dst, in)
				narrow(p.out, tensor.Data[uint16](result)[i0:i0+n], dst)
			}
		}
	}
}

// roundTo rounds x to a 16-bit float type; other types pass.
func roundTo(dt tensor.DType, x []float32, half []uint16) {
	if dt.IsReduced() {
		narrow(dt, half[:len(x)], x)
		widen(dt, x, half[:len(x)])
	}
}

func narrow(dt tensor.DType, dst []uint16, x []float32) {
	if dt == tensor.BFloat16 {
		cpu.F32ToBF16(dst, x)
		return
	}
	cpu.F32ToF16(dst, x)
}

func widen(dt tensor.DType, dst []float32, x []uint16) {
	if dt == tensor.BFloat16 {
		cpu.BF16ToF32(dst, x)
		return
	}
	cpu.F16ToF32(dst, x)
}

// load gives elements [i0, i0+n) of operand j: where they lie, or gathered. first is false if the register holds an earlier block.
func (w *blockState) load(p *program, j int, t *tensor.Tensor, i0, n int, first bool) []float32 {
	o, own := &p.ins[j], w.own[j][:n]
	if o.repeats && !first {
		return w.regs[j][:n] // of the block before, which was at least as long
	}
	switch {
	case o.dtype == tensor.Bool:
		bits := w.bits[:n]
		if o.full {
			bits = tensor.Data[uint8](t)[i0 : i0+n]
		} else {
			gather(o, bits, tensor.Data[uint8](t), i0)
		}
		for i, b := range bits {
			own[i] = float32(b)
		}
	case o.dtype != tensor.Float32:
		half := w.half[:n]
		if o.full {
			half = tensor.Data[uint16](t)[i0 : i0+n]
		} else {
			gather(o, half, tensor.Data[uint16](t), i0)
		}
		widen(o.dtype, own, half)
	case o.full:
		return tensor.Data[float32](t)[i0 : i0+n : i0+n]
	default:
		// A run without gaps is read where it lies.
		if inner := o.walkSizes[0]; o.walkSteps[0] == 1 && i0%inner+n <= inner && len(o.walkSizes) <= 2 {
			at := i0 % inner
			if len(o.walkSizes) == 2 {
				at += i0 / inner * o.walkSteps[1]
			}
			return tensor.Data[float32](t)[at : at+n : at+n]
		}
		gather(o, own, tensor.Data[float32](t), i0)
	}
	return own
}

// gather writes the operand's elements for places i0 and on of the result.
func gather[T float32 | uint16 | uint8](o *operand, dst, src []T, i0 int) {
	sizes, steps := o.walkSizes, o.walkSteps
	inner, step := sizes[0], steps[0]
	x, rest, at := i0%inner, i0/inner, 0
	var buf [8]int
	idx := buf[:]
	if len(sizes) > len(idx) {
		idx = make([]int, len(sizes))
	}
	for d := 1; d < len(sizes); d++ {
		idx[d] = rest % sizes[d]
		rest /= sizes[d]
		at += idx[d] * steps[d]
	}
	for len(dst) > 0 {
		n, rows := min(inner-x, len(dst)), 1
		switch step {
		case 1:
			copy(dst[:n], src[at+x:])
		case 0:
			if n == inner && len(sizes) > 1 && steps[1] == 1 {
				rows = min(len(dst)/n, sizes[1]-idx[1])
			}
			repeatEach(dst[:rows*n], src[at:at+rows], n)
		default:
			row := dst[:n]
			for i := range row {
				row[i] = src[at+(x+i)*step]
			}
		}
		dst, x = dst[rows*n:], 0
		for d := 1; d < len(sizes); d++ {
			at += rows * steps[d]
			if idx[d] += rows; idx[d] < sizes[d] {
				break
			}
			at -= idx[d] * steps[d]
			idx[d], rows = 0, 1
		}
	}
}

// repeatEach writes each element of src n times.
func repeatEach[T float32 | uint16 | uint8](dst, src []T, n int) {
	if d, ok := any(dst).([]float32); ok {
		cpu.RepeatF32(d, any(src).([]float32), n)
		return
	}
	for i, v := range src {
		row := dst[i*n : (i+1)*n]
		for j := range row {
			row[j] = v
		}
	}
}
