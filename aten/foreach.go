package aten

var foreachOps = []Op{}
