package aten

var miscOps = []Op{}
