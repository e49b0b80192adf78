package aten

var indexOps = []Op{}
