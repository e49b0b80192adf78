package cpu

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
