package interp

import (
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/guards"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/symbolic"
)

type guardChecker struct {
	set    *guards.Set
	guards bool
	off    bool
}

// Check implements inputChecker.
func (c *guardChecker) Check(leaves []any) (map[string]int64, error) {
	if c.off {
		return nil, nil
	}
	return c.set.Check(leaves, c.guards)
}

// newInputChecker compiles what the program assumes of its inputs.
func newInputChecker(p *export.Program, opts Options) (inputChecker, error) {
	return newInputCheckerAt(p, opts, keyPaths(p))
}

// newInputCheckerAt is newInputChecker with the paths of the inputs as messages name them.
func newInputCheckerAt(p *export.Program, opts Options, paths []string) (inputChecker, error) {
	spec := guards.Spec{Guards: p.GuardsCode()}
	names := InputNames(p)
	j := 0
	for i, s := range p.Signature().Inputs {
		if s.Kind != export.UserInput {
			continue
		}
		in := guards.Input{Name: s.Arg.ArgName()}
		if j < len(names) {
			in.Name = names[j]
		}
		if j < len(paths) {
			in.KeyPath = paths[j]
		}
		j++
		gi := p.Graph().Inputs[i]
		switch {
		case gi.Value == nil:
			in.IsConstant, in.Constant = true, gi.Constant
		case gi.Value.Kind == export.TensorKind:
			if m := gi.Value.Tensor; m != nil {
				in.Tensor, in.Sizes, in.DType = true, m.Sizes, m.DType
			}
		default:
			in.Sym = gi.Value.Sym
		}
		spec.Inputs = append(spec.Inputs, in)
	}
	for _, r := range p.RangeConstraints() {
		spec.Ranges = append(spec.Ranges, guards.Range{Expr: r.Expr, Min: r.Min, Max: r.Max})
	}
	if opts.NoGuards {
		spec.Guards = nil
	}
	set, err := guards.Compile(spec)
	if err != nil {
		return nil, err
	}
	return &guardChecker{set: set, guards: !opts.NoGuards, off: opts.NoInputChecks}, nil
}

// InputNames gives the Python path of each user input, such as x or d['k'], in the order of the leaves. Without a readable
// tree spec it gives the graph's own names.
func InputNames(p *export.Program) []string {
	var names []string
	for _, s := range p.Signature().Inputs {
		if s.Kind == export.UserInput {
			names = append(names, s.Arg.ArgName())
		}
	}
	in, _ := p.CallSpec()
	spec, err := pytree.Parse(in, p.Parts().NamedTuples)
	if err != nil {
		return names
	}
	var args []string
	if calls := p.ModuleCallGraph(); len(calls) > 0 && calls[0].Signature != nil {
		args = calls[0].Signature.ForwardArgNames
	}
	paths := spec.Paths()
	if len(paths) != len(names) {
		return names
	}
	for i, path := range paths {
		if n := pathName(spec, path, args); n != "" {
			names[i] = n
		}
	}
	return names
}

// keyPaths gives the place of each user input in a call as PyTorch's messages name it: *args[0]['k'], or 'n' for a keyword.
// It is nil without a readable tree spec.
func keyPaths(p *export.Program) []string {
	in, _ := p.CallSpec()
	spec, err := pytree.Parse(in, p.Parts().NamedTuples)
	if err != nil {
		return nil
	}
	var out []string
	for _, path := range spec.Paths() {
		var b strings.Builder
		switch {
		case len(path) < 2:
			return nil
		case path[0].Num == 0:
			b.WriteString("*args" + path[1].String())
		default:
			key := path[1].String()
			b.WriteString(key[1 : len(key)-1])
		}
		for _, k := range path[2:] {
			b.WriteString(k.String())
		}
		out = append(out, b.String())
	}
	return out
}

// pathName writes a path into (args, kwargs) by the names of forward's parameters.
func pathName(spec *pytree.Spec, path []pytree.Key, args []string) string {
	pair := len(spec.Children) == 2 && spec.Children[0].Type == "builtins.tuple" && spec.Children[1].Type == "builtins.dict"
	if !pair || len(path) < 2 {
		return ""
	}
	var b strings.Builder
	if path[0].Num == 0 {
		i := int(path[1].Num)
		if i >= len(args) {
			return ""
		}
		b.WriteString(args[i])
	} else {
		b.WriteString(path[1].Name)
	}
	for _, k := range path[2:] {
		b.WriteString(k.String())
	}
	return b.String()
}

// metaChecker compares values with what the archive records of them.
type metaChecker struct{ syms map[string]int64 }

func newMetaChecker(syms map[string]int64) *metaChecker {
	m := &metaChecker{syms: map[string]int64{}}
	for k, v := range syms {
		m.syms[k] = v
	}
	return m
}

func (m *metaChecker) env(n string) (any, bool) { v, ok := m.syms[n]; return v, ok }

// same evaluates a recorded size; an unbacked symbol that has no value yet takes the one that is seen.
func (m *metaChecker) same(want symbolic.Int, got int64) bool {
	e := want.Expr()
	if e.Op == symbolic.OpSymbol {
		if _, ok := m.syms[e.Name]; !ok {
			m.syms[e.Name] = got
		}
	}
	v, err := e.EvalInt(m.env)
	return err != nil || v == got
}
