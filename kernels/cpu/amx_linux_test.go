//go:build amd64 && !purego

package cpu

import (
	"bytes"
	"math/rand"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// TestTilesUnderSignals multiplies on several threads while signals arrive, whose frames hold the tile registers, and while the
// collector stops the world.
func TestTilesUnderSignals(t *testing.T) {
	if !hasAMX() {
		t.Skip("no AMX")
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGWINCH)
	defer signal.Stop(signals)
	c := &Conv{N: 1, In: 64, Out: 96, Groups: 1, Size: [3]int{1, 40, 40}, OutSize: [3]int{1, 40, 40}, Kernel: [3]int{1, 3, 3},
		Pad: [3]int{0, 1, 1}, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}
	rng := rand.New(rand.NewSource(1))
	x, w := randomBytes(rng, 64*1600), make([]int8, 96*64*9)
	for i := range w {
		w[i] = int8(rng.Intn(256) - 128)
	}
	ep := QuantEpilogue{Scale: make([]float32, 96), Hi: 1e30, To: QuantTo{1, 3, 0, 255}}
	for i := range ep.Scale {
		ep.Scale[i] = 1e-3
	}
	packed := PackQuantConv(c, w)
	want := ep
	want.Out = make([]uint8, 96*1600)
	packed.Forward(nil, c, x, Quant{1, 7, false}, &want)
	p := pool.New(4)
	defer p.Close()
	stop := make(chan struct{})
	var others, runs sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
				runtime.GC()
			}
		}
	})
	for range 3 {
		runs.Go(func() {
			got := ep
			got.Out = make([]uint8, len(want.Out))
			for i := range 300 {
				clear(got.Out)
				packed.Forward(p, c, x, Quant{1, 7, false}, &got)
				if !bytes.Equal(got.Out, want.Out) {
					t.Errorf("run %d differs", i)
					return
				}
			}
		})
	}
	runs.Wait()
	close(stop)
	others.Wait()
}
