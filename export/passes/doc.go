// Package passes makes new programs of programs: Core ATen decomposition with functionalization, moves between devices, other
// dtypes for weights.
//
// A pass never changes the program that it is given.
package passes
