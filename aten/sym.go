package aten

var scalarOps = []Op{}
