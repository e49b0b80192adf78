package aten

var lossOps = []Op{}
