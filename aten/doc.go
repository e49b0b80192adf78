// Package aten is the registry of operators: one entry an operator, with PyTorch's schema string, its shape function, its
// kernel or decomposition, and what passes have to know about it.
//
// An entry ([Op]) is data. Everything else derives from it: argument binding and defaults come from the schema, the eager
// executor ([Eager]) from the shape function and the kernel, shape propagation ([Fake]) from the shape function alone, the
// in-place and _copy forms from the functional entry.
//
// # Writing an operator
//
// Choose the first that fits:
//
//   - View: the schema marks the result as an alias of an argument ("Tensor(a)"). Shape returns a [Meta] made by
//     [Value.ViewMeta] and friends; there is no kernel.
//   - Shape and CPU: the shape function refuses bad input and yields dtype, sizes and strides; the kernel fills outputs that
//     the caller allocated so.
//   - Decomp: a formula over other operators; it needs no Shape.
//   - Dynamic: the kernel sizes its own outputs because they depend on the data (nonzero, unique).
//   - Result: the operator returns numbers, not tensors (sym_size, item).
//
// Operator code refuses input by [Fail], [FailIndex] and so on, which panic with an *[Error]; the entry points of this
// package (Infer, Call) turn that into a returned error. No panic leaves the package.
package aten
