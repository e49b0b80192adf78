package aten

var creationOps = []Op{}
