package main

// gather writes sums of rows of a table.
func gather() {
	bagSum("bagSumF32AVX2", "func(dst, table *float32, idx *int64, n, avail, d int)", "is the sum of n rows of d elements, n > 0; avail indices may be read.", false)
	bagSum("bagWeightedSumF32AVX2", "func(dst, table *float32, idx *int64, scale *float32, n, avail, d int)", "is the sum of n rows of d elements times their scales, n > 0; avail indices may be read.", true)
	transposeColumns()
}

// transposeColumns turns eight columns into eight rows.
func transposeColumns() {
	f := begin("transpose8F32AVX2", "func(dst, x *float32, rows, ldd, ldx int)", "is dst[j*ldd+i] = x[i*ldx+j] for i < rows, a multiple of 8, and j < 8.")
	dst, x, rows, ldd, ldx, to := f.arg("dst"), f.arg("x"), f.arg("rows"), f.arg("ldd"), f.arg("ldx"), f.gp()
	f.op("LSL $2, R%d", ldd)
	f.op("LSL $2, R%d", ldx)
	f.label("loop")
	for i := range reg(4) {
		f.ldpq(i, 4+i, x, 0)
		f.op("ADD R%d, R%d", ldx, x)
	}
	f.transpose4([4]reg{0, 1, 2, 3}, [4]reg{16, 17, 18, 19})
	f.transpose4([4]reg{4, 5, 6, 7}, [4]reg{16, 17, 18, 19})
	f.op("MOVD R%d, R%d", dst, to)
	for i := range reg(8) {
		f.stq(i, to, 0)
		f.op("ADD R%d, R%d", ldd, to)
	}
	f.op("ADD $16, R%d", dst)
	f.op("SUBS $4, R%d", rows)
	f.op("BNE loop")
	f.ret()
}

// rowsAhead is how many rows before its use a row is asked for: rows lie anywhere, and memory takes a while.
const rowsAhead = 12

func bagSum(name, signature, doc string, weighted bool) {
	f := begin(name, signature, doc)
	dst, tab, idx, n, avail, d := f.arg("dst"), f.arg("table"), f.arg("idx"), f.arg("n"), f.arg("avail"), f.arg("d")
	var scale reg
	if weighted {
		scale = f.arg("scale")
	}
	i, row, next, bytes := f.gp(), f.gp(), f.gp(), f.gp()
	f.op("SUB $1, R%d", avail)
	f.op("LSL $2, R%d, R%d", d, bytes)
	rows := func(label string, vectors int, one bool) {
		for v := range reg(vectors) {
			f.zero(v)
		}
		f.op("MOVD ZR, R%d", i)
		f.label(label + "rows")
		f.op("ADD $%d, R%d, R%d", rowsAhead, i, next)
		f.op("CMP R%d, R%d", avail, next)
		f.op("CSEL GT, R%d, R%d, R%d", avail, next, next)
		f.op("MOVD (R%d)(R%d<<3), R%d", idx, next, next)
		f.op("MADD R%d, R%d, R%d, R%d", bytes, tab, next, next)
		f.op("PRFM (R%d), PLDL1KEEP", next)
		f.op("MOVD (R%d)(R%d<<3), R%d", idx, i, row)
		f.op("MADD R%d, R%d, R%d, R%d", bytes, tab, row, row)
		if weighted {
			f.op("FMOVS (R%d)(R%d<<2), F31", scale, i)
		}
		for v := range reg(vectors) {
			if one {
				f.op("FMOVS (R%d), F%d", row, 16+v)
			} else {
				f.ldq(16+v, row, 16*int(v))
			}
			if weighted {
				f.fmlaLane(v, 16+v, 31, 0)
			} else {
				f.v3(fadd, v, v, 16+v)
			}
		}
		f.op("ADD $1, R%d", i)
		f.op("CMP R%d, R%d", n, i)
		f.op("BLT %srows", label)
		for v := range reg(vectors) {
			if one {
				f.op("FMOVS F%d, (R%d)", v, dst)
			} else {
				f.stq(v, dst, 16*int(v))
			}
		}
	}
	columns := func(label, after string, elements, vectors int) {
		f.label(label)
		f.op("CMP $%d, R%d", elements, d)
		f.op("BLT %s", after)
		rows(label, vectors, elements == 1)
		f.op("ADD $%d, R%d", 4*elements, dst)
		f.op("ADD $%d, R%d", 4*elements, tab)
		f.op("SUB $%d, R%d", elements, d)
		f.op("B %s", label)
	}
	columns("four", "one", 16, 4)
	columns("one", "single", 4, 1)
	columns("single", "done", 1, 1)
	f.label("done")
	f.ret()
}
