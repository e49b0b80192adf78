package cpu

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// resnet50 lists the convolutions of ResNet-50 for one image of 224 x 224, and how many there are of each.
func resnet50() (convs []Conv, times []int) {
	add := func(n, in, out, size, kernel, stride int) {
		convs, times = append(convs, conv2d(1, in, out, 1, size, size, kernel, kernel, stride, kernel/2, 1)), append(times, n)
	}
	add(1, 3, 64, 224, 7, 2)
	size, in := 56, 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		width, stride := 64<<stage, min(2, stage+1)
		add(1, in, width, size, 1, 1)
		add(1, in, 4*width, size, 1, stride)
		if stride == 2 {
			add(1, width, width, size, 3, 2)
			blocks--
		}
		size, in = size/stride, 4*width
		add(blocks, width, width, size, 3, 1)
		n := blocks + stride - 1
		add(n, width, in, size, 1, 1)
		add(n-1, in, width, size, 1, 1)
	}
	return convs, times
}

// packDirect packs filters for the sum as it is defined, where PackConv may choose Winograd's algorithm.
func packDirect(c *Conv, w []float32) *PackedConv {
	taps := volume(c.Kernel)
	pw := &PackedConv{set: tileSetOf[float32](), zeros: make([]float32, max(c.Out, c.In*c.Kernel[2]))}
	packed := packedMemory[float32](taps * c.In * pw.set.packedWidth(c.Out))
	pw.packFilters(packed, w, nil, c.In, taps, c.Out)
	pw.groups = [][]float32{packed}
	return pw
}

// BenchmarkResNet50 runs each kind of convolution of ResNet-50 by itself and all 53 in turn, with filters of their own, bias and ReLU, once
// with Winograd's algorithm where PackConv chooses it, in operations of the definition, and once without.
func BenchmarkResNet50(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	convs, times := resnet50()
	for _, threads := range []int{1, 2} {
		p := pool.New(threads)
		defer p.Close()
		for _, how := range []struct {
			name string
			pack func(*Conv, []float32) *PackedConv
		}{{"as-packed", packConv}, {"direct", packDirect}} {
			var all []func()
			var operations float64
			for i, c := range convs {
				x, out := randoms(rng, c.In*volume(c.Size)), packedMemory[float32](c.Out*volume(c.OutSize))
				ep := &Epilogue{ColBias: randoms(rng, c.Out), Act: Activation{Kind: ActReLU}}
				var run func()
				for range times[i] {
					w := how.pack(&c, randoms(rng, c.Out*c.In*volume(c.Kernel)))
					run = func() { ConvNHWC(p, &c, w, x, out, ep) }
					all = append(all, run)
				}
				each := 2 * float64(len(out)) * float64(c.In*volume(c.Kernel))
				operations += each * float64(times[i])
				b.Run(fmt.Sprintf("%s/%dx%d-%d-k%d-s%d-x%d-t%d", how.name, c.Size[1], c.In, c.Out, c.Kernel[2], c.Stride[2], times[i], threads), func(b *testing.B) {
					benchFlops(b, p, each, run)
				})
			}
			b.Run(fmt.Sprintf("%s/all-t%d", how.name, threads), func(b *testing.B) {
				benchFlops(b, p, operations, func() {
					for _, f := range all {
						f()
					}
				})
			})
		}
	}
}
