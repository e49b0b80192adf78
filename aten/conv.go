package aten

var convOps = []Op{}
