package aten

var linalgOps = []Op{}
