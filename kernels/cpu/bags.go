package cpu

// BagSumF32 is dst = the sum of rows idx[0], ..., idx[n-1] of a table [rows, len(dst)], each times its scale where scale is not nil.
// idx may go on beyond n: what lies there is fetched ahead. All indices are within the table.
func BagSumF32(dst, table []float32, idx []int64, n int, scale []float32) {
	d := len(dst)
	switch {
	case n == 0 || d == 0:
		clear(dst)
	case hasAVX512 && scale != nil:
		bagWeightedSumF32AVX512(&dst[0], &table[0], &idx[0], &scale[0], n, len(idx), d)
	case hasAVX512:
		bagSumF32AVX512(&dst[0], &table[0], &idx[0], n, len(idx), d)
	case hasAVX2 && scale != nil:
		bagWeightedSumF32AVX2(&dst[0], &table[0], &idx[0], &scale[0], n, len(idx), d)
	case hasAVX2:
		bagSumF32AVX2(&dst[0], &table[0], &idx[0], n, len(idx), d)
	default:
		bagSumGeneric(dst, table, idx[:n], scale)
	}
}

func bagSumGeneric(dst, table []float32, idx []int64, scale []float32) {
	clear(dst)
	d := len(dst)
	for i, r := range idx {
		row := table[int(r)*d : int(r+1)*d]
		if scale == nil {
			addGeneric(dst, dst, row)
		} else {
			axpyGeneric(dst, row, scale[i])
		}
	}
}
