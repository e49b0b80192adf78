package aten

var specialOps = []Op{}
