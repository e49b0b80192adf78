package aten

var unaryOps = []Op{}
