package aten

var resampleOps = []Op{}
