package aten

var padOps = []Op{}
