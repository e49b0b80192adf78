package aten

var attentionOps = []Op{}
