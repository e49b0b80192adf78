package aten

var bitwiseOps = []Op{}
