// Package cpu holds the loops over slices that take the time: matrix products, convolutions, vector functions. Each has a
// portable Go form, compiled everywhere and the reference; on amd64 some have assembly that is chosen at start-up by the
// CPU's features (build tag purego turns it off). Functions check nothing: the caller has.
package cpu
