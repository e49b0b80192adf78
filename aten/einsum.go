package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"slices"
	"strings"
)

// einsum follows torch.einsum: operands are permuted to [batch, left, inner] and [batch, inner, right] and multiplied pairwise
// from left to right.
func einsum(b *Build, eq string, ts []*Value) *Value {
	eq = strings.ReplaceAll(eq, " ", "")
	lhs, out, hasOut := strings.Cut(eq, "->")
	terms := strings.Split(lhs, ",")
	if len(terms) != len(ts) {
		Fail("einsum(): more operands were provided than specified in the equation")
	}
	// An ellipsis stands for dimensions that get labels of their own, the same from the right in each operand.
	dots := 0
	for i, t := range terms {
		if strings.Contains(t, "...") {
			dots = max(dots, ts[i].Dim()-len(strings.ReplaceAll(t, "...", "")))
		}
	}
	const ell = 1 << 16
	labels := make([][]int, len(terms))
	counts := map[int]int{}
	for i, t := range terms {
		labels[i] = einsumLabels(t, ts[i].Dim()-len(strings.ReplaceAll(t, "...", "")), dots, ell)
		if len(labels[i]) != ts[i].Dim() {
			Fail("einsum(): the number of subscripts in the equation (%d) does not match the number of dimensions (%d) for operand %d", len(labels[i]), ts[i].Dim(), i)
		}
		for _, l := range labels[i] {
			counts[l]++
		}
	}
	var want []int
	if hasOut {
		want = einsumLabels(out, dots, dots, ell)
	} else {
		for d := range dots {
			want = append(want, ell+d)
		}
		var once []int
		for l, n := range counts {
			if n == 1 && l < ell {
				once = append(once, l)
			}
		}
		slices.Sort(once)
		want = append(want, once...)
	}
	for i := range ts {
		ts[i], labels[i] = einsumDiagonals(b, ts[i], labels[i])
	}
	ts = slices.Clone(ts)
	acc, al := ts[0], labels[0]
	for i := 1; i < len(ts); i++ {
		keep := map[int]bool{}
		for _, l := range want {
			keep[l] = true
		}
		for _, rest := range labels[i+1:] {
			for _, l := range rest {
				keep[l] = true
			}
		}
		acc, al = einsumPair(b, acc, al, ts[i], labels[i], keep)
	}
	return einsumFinish(b, acc, al, want)
}

func einsumLabels(t string, n, dots, ell int) []int {
	var out []int
	for i := 0; i < len(t); i++ {
		if strings.HasPrefix(t[i:], "...") {
			for d := dots - n; d < dots; d++ {
				out = append(out, ell+d)
			}
			i += 2
			continue
		}
		out = append(out, int(t[i]))
	}
	return out
}

// einsumDiagonals takes the diagonal where a label repeats within an operand.
func einsumDiagonals(b *Build, v *Value, labels []int) (*Value, []int) {
	for i := 0; i < len(labels); i++ {
		for j := i + 1; j < len(labels); j++ {
			if labels[i] == labels[j] {
				v = b.Call("diagonal", v, 0, i, j)
				l := labels[i]
				labels = slices.Delete(slices.Delete(slices.Clone(labels), j, j+1), i, i+1)
				return einsumDiagonals(b, v, append(labels, l))
			}
		}
	}
	return v, labels
}

// einsumPair multiplies two operands and sums over labels that nobody else wants.
func einsumPair(b *Build, x *Value, xl []int, y *Value, yl []int, keep map[int]bool) (*Value, []int) {
	x, xl = einsumSum(b, x, xl, func(l int) bool { return !keep[l] && !slices.Contains(yl, l) })
	y, yl = einsumSum(b, y, yl, func(l int) bool { return !keep[l] && !slices.Contains(xl, l) })
	var batch, inner, left, right []int
	for _, l := range xl {
		switch {
		case !slices.Contains(yl, l):
			left = append(left, l)
		case keep[l]:
			batch = append(batch, l)
		default:
			inner = append(inner, l)
		}
	}
	for _, l := range yl {
		if !slices.Contains(xl, l) {
			right = append(right, l)
		}
	}
	// Size-1 dimensions broadcast: the other operand's size counts.
	x, y = einsumBroadcast(b, x, xl, y, yl), einsumBroadcast(b, y, yl, x, xl)
	x3 := einsumGroup(b, x, xl, batch, left, inner)
	y3 := einsumGroup(b, y, yl, batch, inner, right)
	p := b.Call("bmm", x3, y3)
	sizes := append(append(sizesOf(x, xl, batch), sizesOf(x, xl, left)...), sizesOf(y, yl, right)...)
	return b.Call("view", p, sizes), append(append(slices.Clone(batch), left...), right...)
}

func einsumSum(b *Build, v *Value, labels []int, gone func(l int) bool) (*Value, []int) {
	var dims []int64
	var rest []int
	for i, l := range labels {
		if gone(l) {
			dims = append(dims, int64(i))
		} else {
			rest = append(rest, l)
		}
	}
	if len(dims) == 0 {
		return v, labels
	}
	return b.Call("sum.dim_IntList", v, dims), rest
}

func einsumBroadcast(b *Build, x *Value, xl []int, y *Value, yl []int) *Value {
	sizes := slices.Clone(x.Sizes)
	changed := false
	for i, l := range xl {
		if j := slices.Index(yl, l); j >= 0 && sizes[i].Int64() == 1 && y.Sizes[j].Ne(symbolic.N(1)) {
			sizes[i], changed = y.Sizes[j], true
		} else if j >= 0 && y.Sizes[j].Ne(symbolic.N(1)) && !sizes[i].Eq(y.Sizes[j]) {
			Fail("einsum(): subscript %c has size %v for operand 1 which does not broadcast with previously seen size %v", rune(l), y.Sizes[j], sizes[i])
		}
	}
	if !changed {
		return x
	}
	return b.Call("expand", x, sizes)
}

// einsumGroup permutes v to three groups of labels and merges each group.
func einsumGroup(b *Build, v *Value, labels []int, groups ...[]int) *Value {
	var perm []int64
	sizes := make([]any, len(groups))
	for g, group := range groups {
		n := int64(1)
		for _, l := range group {
			i := slices.Index(labels, l)
			perm = append(perm, int64(i))
			n *= v.Sizes[i].Int64()
		}
		sizes[g] = n
	}
	return b.Call("reshape", b.Call("permute", v, perm), sizes)
}

func sizesOf(v *Value, labels, want []int) []any {
	out := make([]any, len(want))
	for i, l := range want {
		out[i] = v.Sizes[slices.Index(labels, l)]
	}
	return out
}

// einsumFinish sums what is left and permutes to the wanted order.
func einsumFinish(b *Build, v *Value, labels, want []int) *Value {
	v, labels = einsumSum(b, v, labels, func(l int) bool { return !slices.Contains(want, l) })
	perm := make([]int64, len(want))
	for i, l := range want {
		j := slices.Index(labels, l)
		if j < 0 {
			Fail("einsum(): output subscript %c does not appear in the equation for any input operand", rune(l))
		}
		perm[i] = int64(j)
	}
	return b.Call("permute", v, perm)
}
