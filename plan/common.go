package plan

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
)

// shareCommon is the pass that computes once what several instructions compute alike: masks that each layer makes anew, for instance.
// Arithmetic stays, because it costs less within a fused chain than another value in memory.
func (g *graph) shareCommon() {
	seen := map[string]int{}
	for i, in := range g.instrs {
		if !g.shareable(in) {
			continue
		}
		key := g.instrKey(in)
		j, ok := seen[key]
		if !ok {
			seen[key] = i
			continue
		}
		first, out := g.instrs[j].Outs[0], in.Outs[0]
		if !sameLayout(first, out) || !g.movable(j, i) {
			seen[key] = i
			continue
		}
		to, from := bufferOf(first), bufferOf(out)
		for _, r := range append([]int(nil), from.readers...) {
			for _, v := range reads(g.instrs[r], from) {
				v.Ref = to
				to.readers = append(to.readers, r)
			}
		}
		from.readers = nil
		g.remove(i)
	}
}

// shareable reports that in computes one whole value that nobody writes again, from its arguments alone, by other than plain arithmetic.
func (g *graph) shareable(in *Instr) bool {
	if in == nil || len(in.Outs) != 1 || in.Outs[0] == nil || in.Op.Mutates() || in.Op.Tags&(aten.Random|aten.Effect) != 0 ||
		in.Op != copyOp && aten.Builtin().Lookup(in.Op.Name()) != in.Op {
		return false
	}
	out := in.Outs[0]
	if b := bufferOf(out); b.Kind != Temp || b.given || len(b.writers) != 1 || !covers(out) || out.Numel().Int64() < 2 {
		return false
	}
	if b := in.Op.Body(in.Args); b != nil {
		switch b.Kind {
		case "where", "sin", "cos", "copy":
		default:
			return false
		}
	}
	return true
}

// instrKey is the same text for instructions that compute the same.
func (g *graph) instrKey(in *Instr) string {
	var b strings.Builder
	value := func(v *aten.Value) {
		switch {
		case v == nil:
			b.WriteString("-")
			return
		case v.T != nil && v.Dim() == 0 && !v.DType.IsComplex():
			fmt.Fprintf(&b, "%v", v.T.Float(0))
		case v.T != nil:
			b.WriteString(keyOf(v))
		default:
			fmt.Fprintf(&b, "%p+%v", bufferOf(v), v.Offset)
		}
		fmt.Fprintf(&b, " %v%v%v%t%t%t", v.DType, v.Sizes, v.Strides, v.Conj, v.Neg, v.Wrapped)
	}
	fmt.Fprintf(&b, "%s|%v", in.Op.Name(), in.Outs[0].DType)
	for _, x := range in.Args.V {
		b.WriteByte('|')
		switch x := x.(type) {
		case *aten.Value:
			value(x)
		case []*aten.Value:
			for _, v := range x {
				value(v)
				b.WriteByte(',')
			}
		default:
			fmt.Fprintf(&b, "%T%v", x, x)
		}
	}
	return b.String()
}
