package aten

var distanceOps = []Op{}
