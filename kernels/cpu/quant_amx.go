package cpu

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// Products of 8-bit integers on tiles: Intel's Advanced Matrix Extensions multiply 16 rows of 64 bytes with 64 rows of 16 columns in one
// instruction. A position of the output reads runs of consecutive bytes of the input (one for each row of the window, since channels come
// last), and positions that follow one another read at equal distances, so rows of a tile lie where they are in memory. To keep the
// distance equal from one line of the image to the next, some positions between the lines are computed and thrown away.

// quantTiles is a weight packed for tiles.
type quantTiles struct {
	runs  int    // of bytes that a position reads
	whole bool   // a run is a row of the window, else a tap
	steps int    // tiles along a run
	bytes int    // of a run that a tile takes
	over  int    // bytes that the tiles of a run reach beyond it; their weights are 0
	data  []int8 // [panels of 32 channels, runs, steps, 2 tiles, bytes/4, 16, 4]
	chunk *weightChunk
}

// amxGroup is how many channels the kernel computes at a time, amxBlock how many positions.
const amxGroup, amxBlock = 64, 32

// packQuantTiles fills the tiles of w [Out, In, Kernel...].
func packQuantTiles(c *Conv, w []int8) *PackedQuantConv {
	kh, kw := c.Kernel[1], c.Kernel[2]
	t := &quantTiles{runs: kh, whole: c.Dilation[2] == 1 || kw == 1}
	run := kw * c.In
	if !t.whole {
		t.runs, run = kh*kw, c.In
	}
	t.steps = (run + 63) / 64
	t.bytes = roundUp((run+t.steps-1)/t.steps, 4)
	t.over = t.steps*t.bytes - run
	panel := t.runs * t.steps * t.bytes * 32
	t.data, t.chunk = chunkBytes(panel * ((c.Out + 31) / 32))
	p := &PackedQuantConv{in: c.In, taps: kh * kw, wide: roundUp(c.Out, amxGroup), tiles: t, k: quantKernel{nr: amxGroup}}
	p.sums = make([]int32, p.wide)
	row := make([]int8, kh*kw*c.In) // of the runs, one behind the other: [tap, In]
	for o := range c.Out {
		from := w[o*len(row):][:len(row)]
		if kh*kw == 1 {
			row = from
		} else {
			Transpose(row, from, c.In, kh*kw, c.In, kh*kw)
		}
		p.sums[o] = sumI8(row)
		lane := o%32/16*t.bytes*16 + o%16*4
		for r := range t.runs {
			t.fill(t.data[o/32*panel+r*t.steps*t.bytes*32+lane:], row[r*run:(r+1)*run])
		}
	}
	return p
}

// fill spreads the weights of a channel and a run over its lane, which to begins with: groups of four, 64 bytes apart.
func (t *quantTiles) fill(to, run []int8) {
	for at := 0; at < len(run); at += t.bytes {
		tile := run[at:min(at+t.bytes, len(run))]
		g := to[at*32:]
		for len(tile) >= 4 {
			*(*[4]int8)(g) = [4]int8(tile)
			tile = tile[4:]
			g = g[min(64, len(g)):]
		}
		copy(g, tile)
	}
}

func sumI8(x []int8) int32 {
	var a, b, c, d int32
	for ; len(x) >= 4; x = x[4:] {
		a += int32(x[0])
		b += int32(x[1])
		c += int32(x[2])
		d += int32(x[3])
	}
	for _, v := range x {
		a += int32(v)
	}
	return a + b + c + d
}

// amxArgs is what the kernels read, by 8-byte fields whose places _asm/amx.go knows. They compute output positions [first, last) of
// rows positions, 32 at a time, for groups of 64 channels.
type amxArgs struct {
	config       *[64]byte // rows and bytes of the tiles
	x            *uint8
	taps         *int // offsets of the runs from a position
	runs         int
	steps        int
	bytes        int
	xStep        int // bytes from one position to the next
	w            *int8
	groups       int
	lastPanels   int    // panels of 32 channels in the last group
	lastMask     uint64 // channels that exist in the last group
	offset       *int32 // [64*groups], first value of the sums
	scale, bias  *float32
	acc          *int32 // room for 32x64 sums, or all of them if sums is set
	first, last  int
	rows         int
	tileRows     int // 16, or rows if those are less
	col          int // first's place in its line of pitch positions, of which outW exist
	outW, pitch  int
	out          *uint8 // of first, or of the next position that exists
	outStep      int
	residual     *uint8
	residualStep int
	params       *[8]float32
	sums         int         // 1: leave the sums of each block and group in acc
	_            [17]uintptr // what the kernel keeps there itself
}

// tileRun is one run of a convolution on tiles.
type tileRun struct {
	quantRun
	images, imageBytes int
	rows               int // positions of an image, those between the lines included
	xStep              int
	outW, pitch        int
	params             [8]float32
	config             [64]byte
	fused              bool
	start              []int32 // offsets that sums start with
}

// forwardTiles is Forward on tiles.
func (w *PackedQuantConv) forwardTiles(p *pool.Pool, c *Conv, x []uint8, from Quant, ep *QuantEpilogue) {
	r := &tileRun{quantRun: quantRun{PackedQuantConv: w, c: c, ep: ep, x: x}}
	if b := r.layout(p, uint8(from.Zero)); b != nil {
		defer b.free()
	}
	room := scratch(4*w.wide + 16)
	defer room.free()
	vectors := alignedFloats(room.data)[:4*w.wide]
	clear(vectors)
	ints := unsafe.Slice((*int32)(unsafe.Pointer(&vectors[0])), 2*w.wide)
	r.start, r.offsets = ints[:w.wide], ints[w.wide:]
	r.scale, r.bias = vectors[2*w.wide:3*w.wide], vectors[3*w.wide:]
	ep.scales(r.scale, c.Out)
	copy(r.bias, ep.Bias)
	r.fused = r.canFuse()
	start := r.start
	if !r.fused {
		start = r.offsets // the sums' readers add them
	}
	for i, s := range w.sums {
		start[i] = -from.Zero * s
	}
	r.prepare()
	r.split(p, from.Signed)
	runtime.KeepAlive(w)
}

func alignedFloats(x []float32) []float32 {
	return x[-int(uintptr(unsafe.Pointer(&x[0])))&63/4:]
}

// prepare fills what does not depend on the part of the output.
func (r *tileRun) prepare() {
	t, ep := r.tiles, r.ep
	flip := float32(ep.Of.flip())
	to, shift := ep.To, int32(0)
	if to.Min < 0 {
		shift = 0x80
	}
	bytes := func(v int32) float32 { return asFloat(v & 0xff * 0x01010101) }
	r.params = [8]float32{to.Inv, asFloat(int32(math.Float32bits(1<<23) | uint32(flip))), 1<<23 + float32(ep.Of.Zero) + flip, ep.Of.Scale,
		asFloat((to.Zero + shift) & 0xffff * 0x00010001), bytes(to.one(ep.Lo) + shift), bytes(to.one(ep.Hi) + shift), bytes(shift)}
	r.quantRun.params = requantizeParams(ep)
	rows := byte(min(16, r.rows))
	r.config[0] = 1
	for i := range 8 {
		width, height := byte(64), rows
		switch i {
		case 4, 5:
			width = byte(t.bytes)
		case 6, 7:
			height = byte(t.bytes / 4)
		}
		r.config[16+2*i], r.config[48+i] = width, height
	}
}

// canFuse reports that sums become bytes within the kernel: what it computes with fewer steps than the definition is the same then.
func (r *tileRun) canFuse() bool {
	const huge = 1e18
	ep, to := r.ep, &r.ep.To
	if ep.Float != nil || ep.Act.Kind != ActNone || !(to.Inv > 0 && to.Inv < huge) || !(ep.Lo <= ep.Hi) || to.Zero < -128 || to.Zero > 255 {
		return false
	}
	if to.Min > to.Max || to.Min < -128 || to.Max > 255 || to.Min < 0 && to.Max > 127 {
		return false
	}
	if ep.Residual != nil && (!(float32(math.Abs(float64(ep.Of.Scale))) < huge) || ep.Of.Zero < -256 || ep.Of.Zero > 256) {
		return false
	}
	for i, s := range r.scale {
		if b := r.bias[i]; !(s < huge && s > -huge && b < huge && b > -huge) {
			return false
		}
	}
	return true
}

// layout decides how positions follow one another, and copies the input with its padding where they would not at equal distances. It
// gives the copy.
func (r *tileRun) layout(p *pool.Pool, zero uint8) *byteBuffer {
	c, t := r.c, r.tiles
	r.images, r.rows, r.outW, r.xStep = 1, c.N*volume(c.OutSize), c.N*volume(c.OutSize), c.In
	r.pitch = r.outW
	if c.Kernel[1] == 1 && c.Kernel[2] == 1 && c.Pad[1] == 0 && c.Pad[2] == 0 {
		r.quantRun.taps = []int{0}
		if t.over == 0 && c.Stride == [3]int{1, 1, 1} && c.OutSize == c.Size {
			return nil
		}
		b := bytesScratch(r.rows*c.In + t.over)
		r.gather(p, b.data)
		r.x = b.data
		return b
	}
	h, w := c.Size[1], c.Size[2]
	sh, sw := c.Stride[1], c.Stride[2]
	var b *byteBuffer
	if c.Pad[1] > 0 || c.Pad[2] > 0 || sh > 1 || sw > 1 || t.over > 0 {
		w = roundUp(w+2*c.Pad[2], sw)
		h = (h + 2*c.Pad[1] + sh - 1) / sh // lines of each remainder of the stride
		b = bytesScratch(c.N*sh*h*w*c.In + t.over)
		r.frameLines(p, b.data, zero, h, w)
		r.x = b.data
	}
	line := w * c.In
	r.images, r.imageBytes, r.xStep = c.N, sh*h*line, sw*c.In
	r.pitch, r.outW = w/sw, c.OutSize[2]
	r.rows = (c.OutSize[1]-1)*r.pitch + r.outW
	for i := range c.Kernel[1] {
		y := i * c.Dilation[1]
		at := (y%sh*h + y/sh) * line
		if t.whole {
			r.quantRun.taps = append(r.quantRun.taps, at)
			continue
		}
		for j := range c.Kernel[2] {
			r.quantRun.taps = append(r.quantRun.taps, at+j*c.Dilation[2]*c.In)
		}
	}
	return b
}

// gather copies the positions that a window of one reads.
func (r *tileRun) gather(p *pool.Pool, dst []uint8) {
	c := r.c
	w, n := c.OutSize[2], c.In
	p.ParallelFor(c.N*c.OutSize[1], max(1, 1<<16/(w*n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := r.x[(i/c.OutSize[1]*c.Size[1]+i%c.OutSize[1]*c.Stride[1])*c.Size[2]*n:]
			to := dst[i*w*n:][:w*n]
			if c.Stride[2] == 1 {
				copy(to, from)
				continue
			}
			for j := range w {
				copy(to[j*n:(j+1)*n], from[j*c.Stride[2]*n:])
			}
		}
	})
}

// frameLines copies the input into images of w columns with padding, lines of equal remainder by the stride one after the other, h of
// each.
func (r *tileRun) frameLines(p *pool.Pool, dst []uint8, zero uint8, h, w int) {
	c := r.c
	sh, left, n := c.Stride[1], c.Pad[2]*c.In, c.Size[2]*c.In
	line := w * c.In
	p.ParallelFor(c.N*sh*h, max(1, 1<<16/line), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := dst[i*line:][:line]
			y := i%h*sh + i/h%sh - c.Pad[1]
			if y < 0 || y >= c.Size[1] {
				fill(to, zero)
				continue
			}
			fill(to[:left], zero)
			copy(to[left:], r.x[(i/(h*sh)*c.Size[1]+y)*n:][:n])
			fill(to[left+n:], zero)
		}
	})
}

// split divides the output among the workers, by groups of channels whose weights stay in the cache, and positions.
func (r *tileRun) split(p *pool.Pool, signed bool) {
	const (
		together   = 4       // blocks of positions in a task, which read the weights once
		cache      = 1 << 20 // bytes of weights
		task       = 20e3    // ns
		longest    = 64      // blocks in a call, which cannot be interrupted
		threadsMin = 4       // tasks for each thread
	)
	groups, blocks := r.wide/amxGroup, (r.rows+amxBlock-1)/amxBlock
	bytes := amxGroup * r.runsBytes()
	chunks := (blocks + together - 1) / together
	per := min(groups, max(1, cache/bytes))
	if p.Size() > 1 {
		per = min(per, max(1, groups*r.images*chunks/(threadsMin*p.Size())))
	}
	ranges := (groups + per - 1) / per
	cost := float64(min(together, blocks)*amxBlock*amxGroup*per) * (float64(r.runsBytes())/1500 + 0.25)
	p.ParallelFor(ranges*r.images*chunks, max(1, int(task/cost)), func(lo, hi int) {
		for t := lo; t < hi; {
			chunk, image, part := t%chunks, t/chunks%r.images, t/chunks/r.images
			n := min(hi-t, chunks-chunk, longest/together)
			r.compute(signed, image, part*per, min(groups, (part+1)*per), chunk*together*amxBlock, min(r.rows, (chunk+n)*together*amxBlock))
			t += n
		}
	})
}

// runsBytes is how many bytes of weights a channel has.
func (r *tileRun) runsBytes() int { return r.tiles.runs * r.tiles.steps * r.tiles.bytes }

// compute computes positions [first, last) of an image for groups [g0, g1) of channels.
func (r *tileRun) compute(signed bool, image, g0, g1, first, last int) {
	t, c := r.tiles, r.c
	ch := g0 * amxGroup
	a := amxArgs{config: &r.config, x: &r.x[image*r.imageBytes], taps: &r.quantRun.taps[0], runs: t.runs, steps: t.steps, bytes: t.bytes, xStep: r.xStep,
		w: &t.data[ch*r.runsBytes()], groups: g1 - g0, lastPanels: 2, lastMask: math.MaxUint64,
		offset: &r.start[ch], scale: &r.scale[ch], bias: &r.bias[ch], first: first, last: last, rows: r.rows, tileRows: min(16, r.rows),
		outW: r.outW, pitch: r.pitch, outStep: c.Out, params: &r.params}
	if n := c.Out - (g1-1)*amxGroup; n < amxGroup {
		a.lastPanels, a.lastMask = (n+31)/32, 1<<n-1
	}
	if !r.fused {
		r.computeSums(&a, signed, image, ch)
		return
	}
	acc := scratch(amxBlock*amxGroup + 16)
	defer acc.free()
	a.acc = (*int32)(unsafe.Pointer(&alignedFloats(acc.data)[0]))
	a.col = first % r.pitch
	at := (image*r.valid(r.rows) + r.valid(first)) * c.Out
	if at < len(r.ep.Out) { // else nothing but positions between lines is left
		a.out = &r.ep.Out[at+ch]
		if r.ep.Residual != nil {
			a.residual, a.residualStep = &r.ep.Residual[at+ch], c.Out
		}
	}
	multiplyTiles(&a, signed)
}

func multiplyTiles(a *amxArgs, signed bool) {
	fields := (*uint64)(unsafe.Pointer(a))
	if signed {
		quantTilesAMXS8(fields)
	} else {
		quantTilesAMXU8(fields)
	}
}

// valid counts the positions before q that exist.
func (r *tileRun) valid(q int) int { return q/r.pitch*r.outW + min(q%r.pitch, r.outW) }

// computeSums is compute by way of the sums in memory.
func (r *tileRun) computeSums(a *amxArgs, signed bool, image, ch int) {
	const most = 1 << 15 // sums at a time
	size := amxBlock * amxGroup * a.groups
	blocks := min(max(1, most/size), (a.last-a.first+amxBlock-1)/amxBlock)
	buf := scratch(blocks*size + 16 + amxGroup)
	defer buf.free()
	data := alignedFloats(buf.data)
	acc := unsafe.Slice((*int32)(unsafe.Pointer(&data[0])), blocks*size)
	line := buf.data[len(buf.data)-amxGroup:]
	a.acc, a.sums = &acc[0], 1
	end, groups := a.last, a.groups
	for from := a.first; from < end; from += blocks * amxBlock {
		a.first, a.last = from, min(end, from+blocks*amxBlock)
		to := a.last
		multiplyTiles(a, signed)
		for b := 0; from+b*amxBlock < to; b++ {
			for g := range groups {
				r.finishBlock(acc[(b*groups+g)*amxBlock*amxGroup:], image, ch+g*amxGroup, from+b*amxBlock, to, line)
			}
		}
	}
}

// finishBlock turns the sums of up to 32 positions from q on into results for the group of channels from ch on.
func (r *tileRun) finishBlock(acc []int32, image, ch, q, last int, line []float32) {
	cols := min(amxGroup, r.c.Out-ch)
	for tile := range 2 {
		from, to := q+16*tile, min(last, q+16*tile+16)
		begin := min(from, r.rows-min(16, r.rows)) // of the tile
		for from < to {
			col := from % r.pitch
			n := min(to-from, r.pitch-col)
			if exist := min(n, r.outW-col); exist > 0 {
				r.finishRows(acc[(16*tile+from-begin)*amxGroup:], exist, image*r.valid(r.rows)+r.valid(from), ch, cols, line)
			}
			from += n
		}
	}
}
