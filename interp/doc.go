// Package interp runs exported programs.
//
// A [Module] is a program made ready: its operators bound, its state in place. It runs in one of two modes. Eager mode goes
// node by node over strided tensors and is the reference; planned mode (the default) compiles the graph for the sizes it
// sees into a flat list of kernels over one arena, caches that plan, and falls back to eager mode where a program cannot be
// planned (data-dependent sizes, control flow).
package interp
