package aten

// The selection algorithms of the C++ library that PyTorch is built with. Which of several equal elements they put where is
// visible in the indices of topk, median and mode, so they are followed step by step, over any slice and order.

// less orders two elements; it must be a strict weak order.
type less[T any] func(a, b T) bool

// nthElement puts at v[nth] what sorting would put there, nothing greater before it and nothing less behind it.
func nthElement[T any](v []T, nth int, lt less[T]) {
	lo, hi := 0, len(v)
	if lo == hi || nth == hi {
		return
	}
	depth := 2 * floorLog2(hi)
	for hi-lo > 3 {
		if depth == 0 {
			heapSelect(v[lo:hi], nth+1-lo, lt)
			v[lo], v[nth] = v[nth], v[lo]
			return
		}
		depth--
		cut := lo + partition(v[lo:hi], lt)
		if cut <= nth {
			lo = cut
		} else {
			hi = cut
		}
	}
	insertionSort(v[lo:hi], lt)
}

// introSort sorts, not stably.
func introSort[T any](v []T, lt less[T]) {
	if len(v) == 0 {
		return
	}
	introLoop(v, 2*floorLog2(len(v)), lt)
	if len(v) <= 16 {
		insertionSort(v, lt)
		return
	}
	insertionSort(v[:16], lt)
	for i := 16; i < len(v); i++ {
		sink(v, i, lt)
	}
}

func introLoop[T any](v []T, depth int, lt less[T]) {
	for len(v) > 16 {
		if depth == 0 {
			partialSort(v, len(v), lt)
			return
		}
		depth--
		cut := partition(v, lt)
		introLoop(v[cut:], depth, lt)
		v = v[:cut]
	}
}

// partialSort puts the least m elements in order at the front.
func partialSort[T any](v []T, m int, lt less[T]) {
	heapSelect(v, m, lt)
	for n := m; n > 1; n-- {
		x := v[n-1]
		v[n-1] = v[0]
		siftDown(v[:n-1], 0, x, lt)
	}
}

func floorLog2(n int) int {
	k := 0
	for n > 1 {
		n >>= 1
		k++
	}
	return k
}

// partition splits v around the median of three of its elements and gives the place of the cut.
func partition[T any](v []T, lt less[T]) int {
	n := len(v)
	medianToFront(v, 1, n/2, n-1, lt)
	lo, hi := 1, n
	for {
		for lt(v[lo], v[0]) {
			lo++
		}
		hi--
		for lt(v[0], v[hi]) {
			hi--
		}
		if lo >= hi {
			return lo
		}
		v[lo], v[hi] = v[hi], v[lo]
		lo++
	}
}

func medianToFront[T any](v []T, a, b, c int, lt less[T]) {
	m := a
	if lt(v[a], v[b]) {
		switch {
		case lt(v[b], v[c]):
			m = b
		case lt(v[a], v[c]):
			m = c
		}
	} else if !lt(v[a], v[c]) {
		if m = b; lt(v[b], v[c]) {
			m = c
		}
	}
	v[0], v[m] = v[m], v[0]
}

func insertionSort[T any](v []T, lt less[T]) {
	for i := 1; i < len(v); i++ {
		if lt(v[i], v[0]) {
			x := v[i]
			copy(v[1:i+1], v[:i])
			v[0] = x
			continue
		}
		sink(v, i, lt)
	}
}

// sink moves v[i] down past greater elements; something not greater must stand before them.
func sink[T any](v []T, i int, lt less[T]) {
	x := v[i]
	for lt(x, v[i-1]) {
		v[i] = v[i-1]
		i--
	}
	v[i] = x
}

// heapSelect makes v[:m] a heap of the least m elements, the greatest at the root.
func heapSelect[T any](v []T, m int, lt less[T]) {
	heap := v[:m]
	for p := (m - 2) / 2; p >= 0 && m >= 2; p-- {
		siftDown(heap, p, heap[p], lt)
	}
	for i := m; i < len(v); i++ {
		if lt(v[i], v[0]) {
			x := v[i]
			v[i] = v[0]
			siftDown(heap, 0, x, lt)
		}
	}
}

// siftDown puts x into the heap at the hole: down to a leaf along the greater children, then up again.
func siftDown[T any](heap []T, hole int, x T, lt less[T]) {
	top, n := hole, len(heap)
	child := hole
	for child < (n-1)/2 {
		child = 2 * (child + 1)
		if lt(heap[child], heap[child-1]) {
			child--
		}
		heap[hole] = heap[child]
		hole = child
	}
	if n%2 == 0 && child == (n-2)/2 {
		child = 2*child + 1
		heap[hole] = heap[child]
		hole = child
	}
	for hole > top {
		parent := (hole - 1) / 2
		if !lt(heap[parent], x) {
			break
		}
		heap[hole] = heap[parent]
		hole = parent
	}
	heap[hole] = x
}

// quickSelect is PyTorch's own selection behind kthvalue: v[k] becomes what sorting would put there.
func quickSelect[T any](v []T, k int, gt func(a, b T) bool) {
	lo, hi := 0, len(v)-1
	swap := func(a, b int) { v[a], v[b] = v[b], v[a] }
	for lo < hi {
		if hi == lo+1 {
			if gt(v[lo], v[hi]) {
				swap(lo, hi)
			}
			return
		}
		swap(lo+(hi-lo)/2, lo+1)
		for _, p := range [...][2]int{{lo + 1, hi}, {lo, hi}, {lo + 1, lo}} {
			if gt(v[p[0]], v[p[1]]) {
				swap(p[0], p[1])
			}
		}
		i, j, pivot := lo+1, hi, v[lo]
		for {
			for i++; gt(pivot, v[i]); i++ {
			}
			for j--; gt(v[j], pivot); j-- {
			}
			if j < i {
				break
			}
			swap(i, j)
		}
		swap(lo, j)
		if j <= k {
			lo = i
		}
		if j >= k {
			hi = j - 1
		}
	}
}
