package aten

var assertOps = []Op{}
