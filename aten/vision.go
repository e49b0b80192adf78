package aten

var visionOps = []Op{}
