package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/tensor"
)

// The settings of MTCNN (Zhang et al., Joint Face Detection and Alignment using Multitask Cascaded Convolutional Networks).
const (
	pyramid   = 0.709 // size of one picture of the pyramid to the one before
	smallest  = 20    // pixels of the smallest face
	cell      = 12    // pixels that one output of the proposal net sees
	stride    = 2     // pixels between them
	batch     = 256   // crops that go through a net at once
	proposing = 0.6   // least scores of the three stages
	refining  = 0.7
	deciding  = 0.7
)

// Detector finds faces with three nets, each stricter than the one before.
type Detector struct {
	proposal, refine, landmarks *pt2.Model
}

// NewDetector loads the nets from a folder with mtcnn-pnet, mtcnn-rnet and mtcnn-onet.
func NewDetector(dir string) (*Detector, error) {
	d := &Detector{}
	for _, n := range []struct {
		name  string
		model **pt2.Model
	}{{"mtcnn-pnet", &d.proposal}, {"mtcnn-rnet", &d.refine}, {"mtcnn-onet", &d.landmarks}} {
		m, err := pt2.Load(filepath.Join(dir, n.name, "model.pt2"))
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("%s: %w", n.name, err)
		}
		*n.model = m
	}
	return d, nil
}

// Close gives the nets back.
func (d *Detector) Close() {
	for _, m := range []*pt2.Model{d.proposal, d.refine, d.landmarks} {
		if m != nil {
			m.Close()
		}
	}
}

// Detect finds the faces on a picture, float32 [1, 3, height, width] from 0 to 255, best first.
func (d *Detector) Detect(ctx context.Context, picture *tensor.Tensor) ([]Face, error) {
	list, err := d.propose(ctx, picture)
	if err != nil {
		return nil, err
	}
	if list, err = d.refined(ctx, picture, list); err != nil {
		return nil, err
	}
	return d.decided(ctx, picture, list)
}

// propose runs the proposal net over a pyramid of pictures.
func (d *Detector) propose(ctx context.Context, picture *tensor.Tensor) ([]candidate, error) {
	h, w := float64(picture.Sizes()[2]), float64(picture.Sizes()[3])
	var all []candidate
	for scale := float64(cell) / smallest; math.Min(h, w)*scale >= cell; scale *= pyramid {
		x := resize(picture, [4]int{0, 0, int(w), int(h)}, int(h*scale+1), int(w*scale+1))
		var out struct{ Reg, Prob [][][][]float32 } // [1, 4, rows, columns], [1, 2, rows, columns]
		if err := d.proposal.Call(ctx, &out, x); err != nil {
			return nil, err
		}
		var found []candidate
		for y, row := range out.Prob[0][1] {
			for x, p := range row {
				if p < proposing {
					continue
				}
				c := candidate{Face: Face{Score: float64(p)}}
				for i, at := range [4]int{stride*x + 1, stride*y + 1, stride*x + cell, stride*y + cell} {
					c.Box[i] = math.Floor(float64(at) / scale)
					c.reg[i] = float64(out.Reg[0][i][y][x])
				}
				found = append(found, c)
			}
		}
		all = append(all, suppress(found, 0.5)...)
	}
	return changed(suppress(all, 0.7), func(c candidate) candidate { return c.moved(0).square() }), nil
}

// refined keeps what the second net takes for a face.
func (d *Detector) refined(ctx context.Context, picture *tensor.Tensor, list []candidate) ([]candidate, error) {
	var kept []candidate
	for _, part := range batches(list) {
		var out struct{ Reg, Prob [][]float32 } // [n, 4], [n, 2]
		if err := d.refine.Call(ctx, &out, crops(picture, part, 24)); err != nil {
			return nil, err
		}
		kept = append(kept, scored(part, out.Reg, out.Prob, refining)...)
	}
	return changed(suppress(kept, 0.7), func(c candidate) candidate { return c.moved(1).square() }), nil
}

// decided is what the third net takes for a face, with its landmarks.
func (d *Detector) decided(ctx context.Context, picture *tensor.Tensor, list []candidate) ([]Face, error) {
	var kept []candidate
	for _, part := range batches(list) {
		var out struct{ Reg, Points, Prob [][]float32 } // [n, 4], [n, 10], [n, 2]
		if err := d.landmarks.Call(ctx, &out, crops(picture, part, 48)); err != nil {
			return nil, err
		}
		for i := range part {
			b := part[i].Box
			for k := range part[i].Points {
				part[i].Points[k] = [2]float64{float64(out.Points[i][k])*(b[2]-b[0]+1) + b[0] - 1, float64(out.Points[i][5+k])*(b[3]-b[1]+1) + b[1] - 1}
			}
		}
		kept = append(kept, scored(part, out.Reg, out.Prob, deciding)...)
	}
	kept = suppress(changed(kept, func(c candidate) candidate { return c.moved(1) }), 0.7)
	faces := make([]Face, len(kept))
	for i, c := range kept {
		faces[i] = c.Face
	}
	return faces, nil
}

func changed(list []candidate, f func(candidate) candidate) []candidate {
	for i := range list {
		list[i] = f(list[i])
	}
	return list
}

func batches(list []candidate) (out [][]candidate) {
	for len(list) > 0 {
		n := min(batch, len(list))
		out = append(out, list[:n])
		list = list[n:]
	}
	return out
}

// scored keeps the candidates with a score above limit and takes over what the net says of them.
func scored(list []candidate, reg, prob [][]float32, limit float32) (kept []candidate) {
	for i, c := range list {
		if prob[i][1] <= limit {
			continue
		}
		c.Score = float64(prob[i][1])
		for k := range c.reg {
			c.reg[k] = float64(reg[i][k])
		}
		kept = append(kept, c)
	}
	return kept
}
