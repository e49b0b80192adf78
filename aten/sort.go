package aten

var sortOps = []Op{}
