package aten

var poolOps = []Op{}
