package cpu

// LSTMCellF32 finishes one step of an LSTM for one row: gates [4*hidden] holds the sums for the input, forget, cell and output gates
// (it is overwritten), c the cell state. It writes the new cell state and hidden state; cOut may be c.
func LSTMCellF32(gates, c, hOut, cOut []float32) {
	n := len(hOut)
	in, forget, cell, output := gates[:n], gates[n:2*n], gates[2*n:3*n], gates[3*n:4*n]
	SigmoidF32(gates[:2*n], gates[:2*n])
	TanhF32(cell, cell)
	SigmoidF32(output, output)
	MulF32(in, in, cell)
	MulAddF32(cOut[:n], forget, c, in)
	TanhF32(hOut, cOut)
	MulF32(hOut, hOut, output)
}

// GRUCellF32 finishes one step of a GRU for one row: xg and hg [3*hidden] hold the input's and the state's sums for the reset, update
// and new gates (both are overwritten), h the state. It writes the new state; hOut may be h.
func GRUCellF32(xg, hg, h, hOut []float32) {
	n := len(hOut)
	AddF32(xg[:2*n], xg[:2*n], hg[:2*n])
	SigmoidF32(xg[:2*n], xg[:2*n])
	reset, update, fresh := xg[:n], xg[n:2*n], xg[2*n:3*n]
	MulAddF32(fresh, reset, hg[2*n:3*n], fresh)
	TanhF32(fresh, fresh)
	d := hg[:n] // h' = n + z (h - n)
	SubF32(d, h, fresh)
	MulAddF32(hOut, update, d, fresh)
}
