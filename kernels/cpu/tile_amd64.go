//go:build !purego

package cpu

// The kernels by height. A tile of 12x32 keeps 24 sums in registers, one of 6x16 twelve: as many as there is room for.
var (
	avx512F32 = []tileFunc{
		tile1x32F32AVX512, tile2x32F32AVX512, tile3x32F32AVX512, tile4x32F32AVX512, tile5x32F32AVX512, tile6x32F32AVX512,
		tile7x32F32AVX512, tile8x32F32AVX512, tile9x32F32AVX512, tile10x32F32AVX512, tile11x32F32AVX512, tile12x32F32AVX512,
	}
	avx512HalfF32 = []tileFunc{
		tile1x16F32AVX512, tile2x16F32AVX512, tile3x16F32AVX512, tile4x16F32AVX512, tile5x16F32AVX512, tile6x16F32AVX512,
		tile7x16F32AVX512, tile8x16F32AVX512, tile9x16F32AVX512, tile10x16F32AVX512, tile11x16F32AVX512, tile12x16F32AVX512,
	}
	avx512F64 = []tileFunc{
		tile1x16F64AVX512, tile2x16F64AVX512, tile3x16F64AVX512, tile4x16F64AVX512, tile5x16F64AVX512, tile6x16F64AVX512,
		tile7x16F64AVX512, tile8x16F64AVX512, tile9x16F64AVX512, tile10x16F64AVX512, tile11x16F64AVX512, tile12x16F64AVX512,
	}
	avx2F32 = []tileFunc{
		tile1x16F32AVX2, tile2x16F32AVX2, tile3x16F32AVX2, tile4x16F32AVX2, tile5x16F32AVX2, tile6x16F32AVX2,
	}
	avx2F64 = []tileFunc{
		tile1x8F64AVX2, tile2x8F64AVX2, tile3x8F64AVX2, tile4x8F64AVX2, tile5x8F64AVX2, tile6x8F64AVX2,
	}
)

var (
	tileSets32 = []*tileSet[float32]{
		{name: "AVX512", mr: 12, nr: 32, masked: true, full: avx512F32, half: avx512HalfF32},
		{name: "AVX2", mr: 6, nr: 16, full: avx2F32},
		genericTiles[float32](),
	}
	tileSets64 = []*tileSet[float64]{
		{name: "AVX512", mr: 12, nr: 16, masked: true, full: avx512F64},
		{name: "AVX2", mr: 6, nr: 8, full: avx2F64},
		genericTiles[float64](),
	}
)

// The depthwise kernels by columns, and those for groups of several channels.
var (
	depthwiseAVX512 = []tileFunc{depthwise1F32AVX512, depthwise2F32AVX512, depthwise3F32AVX512, depthwise4F32AVX512}
	depthwiseAVX2   = []tileFunc{depthwise1F32AVX2, depthwise2F32AVX2, depthwise3F32AVX2, depthwise4F32AVX2}
	groupedAVX512   = []tileFunc{grouped1F32AVX512, grouped2F32AVX512, grouped3F32AVX512, grouped4F32AVX512}
	groupedAVX2     = []tileFunc{grouped1F32AVX2, grouped2F32AVX2, grouped3F32AVX2, grouped4F32AVX2}
)

// depthwiseKernels are those that the CPU's features choose, and of how many channels they compute multiples.
func depthwiseKernels(grouped bool) (kernels []tileFunc, lanes int) {
	switch {
	case hasAVX512 && grouped:
		return groupedAVX512, 16
	case hasAVX512:
		return depthwiseAVX512, 1
	case hasAVX2 && grouped:
		return groupedAVX2, 8
	case hasAVX2:
		return depthwiseAVX2, 8
	}
	return nil, 0
}

// winogradKernelsOf are those that the CPU's features choose; false if there are none.
func winogradKernelsOf() (winogradKernels, bool) {
	switch {
	case hasAVX512:
		return winogradKernels{winogradInF32AVX512, winogradOutF32AVX512}, true
	case hasAVX2:
		return winogradKernels{winogradInF32AVX2, winogradOutF32AVX2}, true
	}
	return winogradKernels{}, false
}

// levelOf is the row of the tables that the CPU's features choose.
func levelOf() int {
	switch {
	case hasAVX512:
		return 0
	case hasAVX2:
		return 1
	}
	return 2
}
