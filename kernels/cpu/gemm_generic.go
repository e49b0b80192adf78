package cpu

// microGeneric computes an mr x nr tile: c = a*b, or c += a*b with beta. a is [kb, mr], b is [kb, nr].
func microGeneric(kb int, a, b, c []float32, ldc int, beta bool) {
	var acc [mr * nr]float32
	for p := range kb {
		av := a[p*mr : p*mr+mr]
		bv := (*[nr]float32)(b[p*nr : p*nr+nr])
		for i, x := range av {
			row := (*[nr]float32)(acc[i*nr : i*nr+nr])
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
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}
