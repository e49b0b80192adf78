package aten

// builtinRegistry is [Builtin] for code that the tables of operators refer to, which may not name it (the tables would depend
// on themselves).
var builtinRegistry func() *Registry

func init() { builtinRegistry = Builtin }

// NewBuildWith makes a Build over x with the built-in operators.
func NewBuildWith(x Executor) *Build { return &Build{Exec: x, Reg: builtinRegistry()} }
