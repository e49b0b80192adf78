package aten

var rnnOps = []Op{}
