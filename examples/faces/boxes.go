package main

import (
	"math"
	"sort"
)

// Face is a face on a picture, in pixels.
type Face struct {
	Score  float64
	Box    [4]float64    // left, top, right, bottom
	Points [5][2]float64 // eyes, nose, corners of the mouth
}

// candidate is a box on its way to a face. reg says how a net wants it moved, in parts of its width and height.
type candidate struct {
	Face
	reg [4]float64
}

// moved applies reg; plus is what a net adds to widths and heights.
func (c candidate) moved(plus float64) candidate {
	w, h := c.Box[2]-c.Box[0]+plus, c.Box[3]-c.Box[1]+plus
	for i, size := range [4]float64{w, h, w, h} {
		c.Box[i] += c.reg[i] * size
	}
	return c
}

// square grows the shorter side around the middle.
func (c candidate) square() candidate {
	w, h := c.Box[2]-c.Box[0], c.Box[3]-c.Box[1]
	side := math.Max(w, h)
	x, y := c.Box[0]+w/2-side/2, c.Box[1]+h/2-side/2
	c.Box = [4]float64{x, y, x + side, y + side}
	return c
}

func area(b [4]float64) float64 { return (b[2] - b[0]) * (b[3] - b[1]) }

// overlap is the intersection of two boxes over their union.
func overlap(a, b [4]float64) float64 {
	both := [4]float64{math.Max(a[0], b[0]), math.Max(a[1], b[1]), math.Min(a[2], b[2]), math.Min(a[3], b[3])}
	if both[2] <= both[0] || both[3] <= both[1] {
		return 0
	}
	inter := area(both)
	return inter / (area(a) + area(b) - inter)
}

// suppress keeps the best of boxes that overlap by more than limit (non-maximum suppression), best first.
func suppress(list []candidate, limit float64) []candidate {
	sort.SliceStable(list, func(i, j int) bool { return list[i].Score > list[j].Score })
	var kept []candidate
next:
	for _, c := range list {
		for _, k := range kept {
			if overlap(c.Box, k.Box) > limit {
				continue next
			}
		}
		kept = append(kept, c)
	}
	return kept
}
