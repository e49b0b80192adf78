package aten

var compareOps = []Op{}
