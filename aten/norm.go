package aten

var normOps = []Op{}
