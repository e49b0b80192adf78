package aten

var quantizedOps = []Op{}
