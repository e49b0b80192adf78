package aten

var matmulOps = []Op{}
