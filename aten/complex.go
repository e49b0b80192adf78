package aten

var complexOps = []Op{}
