package aten

var scanOps = []Op{}
