// Package tensor holds dense, strided, n-dimensional arrays on the CPU: dtypes, storages, sizes, strides and views.
//
// A [Tensor] is a view of a [Storage]: element (i0, i1, ...) lies at offset + i0*stride0 + i1*stride1 + ..., counted in
// elements. Several tensors may share one storage, as in PyTorch. The package knows nothing of graphs or files.
package tensor
