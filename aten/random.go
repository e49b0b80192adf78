package aten

var randomOps = []Op{}
