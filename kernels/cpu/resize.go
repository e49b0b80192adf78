package cpu

import "github.com/pt2go/pt2/internal/pool"

// Resize2d describes the resizing of planes [Planes, H, W] to [Planes, OutH, OutW]. ScaleH and ScaleW are the steps in the source for
// a step in the result, as PyTorch computes them: (H-1)/(OutH-1) with AlignCorners, else 1/scale_factor or H/OutH.
type Resize2d struct {
	Planes, H, W, OutH, OutW int
	ScaleH, ScaleW           float32
	AlignCorners             bool
}

// taps gives for each output position the two source positions and the weight of the second.
func (r *Resize2d) taps(out, size int, scale float32) (at, step []int, weight []float32) {
	at, step, weight = make([]int, out), make([]int, out), make([]float32, out)
	for i := range out {
		s := scale * float32(i)
		if !r.AlignCorners {
			s = max(0, scale*(float32(i)+0.5)-0.5)
		}
		j := min(int(s), size-1)
		at[i] = j
		if j < size-1 {
			step[i] = 1
		}
		weight[i] = min(max(s-float32(j), 0), 1)
	}
	return at, step, weight
}

// BilinearF32 interpolates between the four nearest numbers.
func (r *Resize2d) BilinearF32(p *pool.Pool, dst, x []float32) {
	ya, ys, yw := r.taps(r.OutH, r.H, r.ScaleH)
	xa, xs, xw := r.taps(r.OutW, r.W, r.ScaleW)
	p.ParallelFor(r.Planes*r.OutH, rowGrain(4*r.OutW), func(lo, hi int) {
		buf := scratch(r.W)
		defer buf.free()
		for t := lo; t < hi; t++ {
			plane, oy := t/r.OutH, t%r.OutH
			top := x[(plane*r.H+ya[oy])*r.W:][:r.W]
			low := x[(plane*r.H+ya[oy]+ys[oy])*r.W:][:r.W]
			row := buf.data
			MulScalarF32(row, top, 1-yw[oy])
			AxpyF32(row, low, yw[oy])
			d := dst[t*r.OutW : (t+1)*r.OutW]
			for i := range d {
				j := xa[i]
				d[i] = row[j]*(1-xw[i]) + row[j+xs[i]]*xw[i]
			}
		}
	})
}

// NearestF32 takes the number at floor(i*scale); exact takes floor((i+1/2)*scale), PyTorch's nearest-exact.
func (r *Resize2d) NearestF32(p *pool.Pool, dst, x []float32, exact bool) {
	half := float32(0)
	if exact {
		half = 0.5
	}
	cols := make([]int, r.OutW)
	for i := range cols {
		cols[i] = min(int((float32(i)+half)*r.ScaleW), r.W-1)
	}
	p.ParallelFor(r.Planes*r.OutH, rowGrain(r.OutW), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			plane, oy := t/r.OutH, t%r.OutH
			row := x[(plane*r.H+min(int((float32(oy)+half)*r.ScaleH), r.H-1))*r.W:][:r.W]
			d := dst[t*r.OutW : (t+1)*r.OutW]
			for i, j := range cols {
				d[i] = row[j]
			}
		}
	})
}
