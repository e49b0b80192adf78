package aten

var joinOps = []Op{}
