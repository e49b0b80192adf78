package cpu

// microGeneric is the portable micro-kernel.
func microGeneric[T Float](kb int, a, b, c []T, ldc int, beta bool) {
	var acc [mr * nr]T
	nr := nrOf[T]()
	for p := range kb {
		av, bv := a[p*mr:p*mr+mr], b[p*nr:p*nr+nr]
		for i, x := range av {
			row := acc[i*nr:][:len(bv)]
			for j, y := range bv {
				row[j] += x * y
			}
		}
	}
	for i := range mr {
		d := c[i*ldc : i*ldc+nr]
		for j := range d {
			if beta {
				d[j] += acc[i*nr+j]
			} else {
				d[j] = acc[i*nr+j]
			}
		}
	}
}

func axpyGeneric(y, x []float32, s float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] += s * v
	}
}

func dotGeneric(x, y []float32) float32 {
	y = y[:len(x)]
	var s [8]float32
	for len(x) >= 8 {
		for i := range s {
			s[i] += x[i] * y[i]
		}
		x, y = x[8:], y[8:]
	}
	for i, v := range x {
		s[i] += v * y[i]
	}
	return sum8(&s)
}
