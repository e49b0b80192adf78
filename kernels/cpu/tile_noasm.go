//go:build purego || !(amd64 || arm64)

package cpu

var (
	tileSets32 = []*tileSet[float32]{genericTiles[float32]()}
	tileSets64 = []*tileSet[float64]{genericTiles[float64]()}
)

func levelOf() int { return 0 }

func depthwiseKernels(bool) (kernels []tileFunc, lanes int) { return nil, 0 }

func winogradKernelsOf() (winogradKernels, bool) { return winogradKernels{}, false }
