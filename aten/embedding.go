package aten

var embeddingOps = []Op{}
