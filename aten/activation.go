package aten

var activationOps = []Op{}
