package interp

import "context"

// shared is what all instances of a module have in common.
type shared struct{}

func newShared() *shared { return &shared{} }

// runPlanned runs by a plan; done is false if the program cannot be planned for these inputs.
func (m *Module) runPlanned(context.Context, []any) (out []any, done bool, err error) {
	return nil, false, nil
}

// weightsChanged drops what was made from the old weights.
func (s *shared) weightsChanged() {}
