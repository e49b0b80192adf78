// Package export is the model of an exported program: its graph, signature, state, constraints and module call graph, with
// the checks that PyTorch's verifiers make and the text that print(ep) gives. It knows no files and no kernels.
package export
