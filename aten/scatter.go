package aten

var scatterOps = []Op{}
