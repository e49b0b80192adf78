package aten

var reductionOps = []Op{}
