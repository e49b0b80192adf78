package aten

var fftOps = []Op{}
