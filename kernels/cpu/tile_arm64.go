//go:build !purego

package cpu

// The kernels by height. A tile of 6x16 keeps 24 sums in registers.
var (
	tileSets32 = []*tileSet[float32]{
		{name: "NEON", mr: 6, nr: 16, full: []tileFunc{
			tile1x16F32AVX2, tile2x16F32AVX2, tile3x16F32AVX2, tile4x16F32AVX2, tile5x16F32AVX2, tile6x16F32AVX2,
		}},
		genericTiles[float32](),
	}
	tileSets64 = []*tileSet[float64]{
		{name: "NEON", mr: 6, nr: 8, full: []tileFunc{
			tile1x8F64AVX2, tile2x8F64AVX2, tile3x8F64AVX2, tile4x8F64AVX2, tile5x8F64AVX2, tile6x8F64AVX2,
		}},
		genericTiles[float64](),
	}
	depthwiseNEON = []tileFunc{depthwise1F32AVX2, depthwise2F32AVX2, depthwise3F32AVX2, depthwise4F32AVX2}
	groupedNEON   = []tileFunc{grouped1F32AVX2, grouped2F32AVX2, grouped3F32AVX2, grouped4F32AVX2}
)

func levelOf() int {
	if hasAVX2 {
		return 0
	}
	return 1
}

// depthwiseKernels are those for single channels or for groups, and of how many channels they compute multiples.
func depthwiseKernels(grouped bool) (kernels []tileFunc, lanes int) {
	switch {
	case !hasAVX2:
		return nil, 0
	case grouped:
		return groupedNEON, 8
	}
	return depthwiseNEON, 4
}

func winogradKernelsOf() (winogradKernels, bool) {
	return winogradKernels{winogradInF32AVX2, winogradOutF32AVX2}, hasAVX2
}
