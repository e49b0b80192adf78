package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/tensor"
)

// tensorID tells which names stand for one tensor.
type tensorID struct {
	storage *tensor.Storage
	layout  string
}

func idOf(t *tensor.Tensor) tensorID {
	return tensorID{t.Storage(), fmt.Sprint(t.DType(), t.Sizes(), t.Strides(), t.Offset())}
}

// assignAll gives the modules their parameters, buffers and constants: those that the graph uses, then the others of the state dict.
func (u *unflattener) assignAll() {
	parts := u.parts
	known := map[tensorID]*Attr{}
	share := func(name string, t *tensor.Tensor, kind export.InputKind, persistent bool) *Attr {
		id := idOf(t)
		if known[id] == nil {
			known[id] = &Attr{Kind: kind, Target: name, Tensor: t, Persistent: persistent}
		}
		return known[id]
	}
	assigned := map[string]bool{}
	for i := range parts.Signature.Inputs {
		s := &parts.Signature.Inputs[i]
		if s.Kind != export.Parameter && s.Kind != export.Buffer {
			continue
		}
		if t, err := u.p.InputTensor(s); err == nil {
			u.assign(s.Target, share(s.Target, t, s.Kind, s.Persistent == nil || *s.Persistent))
			assigned[s.Target] = true
		}
	}
	for name, t := range parts.State.All() {
		if assigned[name] {
			continue
		}
		kind := export.Buffer
		if parts.IsParameter[name] {
			kind = export.Parameter
		}
		u.assign(name, share(name, t, kind, true))
	}
	for name, c := range parts.Constants.All() {
		if assigned[name] {
			continue
		}
		switch c := c.(type) {
		case *tensor.Tensor:
			u.assign(name, share(name, c, export.ConstantTensor, false))
		case *export.CustomObject:
			u.assign(name, &Attr{Kind: export.CustomObj, Target: name, Object: c})
		}
	}
}

// assign hangs an attribute to the module that its name says, and to all calls of that module.
func (u *unflattener) assign(name string, a *Attr) {
	parts := strings.Split(name, ".")
	modules := []*Submodule{u.root}
	for _, part := range parts[:len(parts)-1] {
		var next []*Submodule
		for _, m := range modules {
			if _, ok := m.Children.Get(part); !ok {
				m.Children.Set(part, newSubmodule(""))
			}
			for k, c := range m.Children.All() {
				if isCallName(k, part) && !slices.Contains(next, c) {
					next = append(next, c)
				}
			}
		}
		modules = next
	}
	for _, m := range modules {
		m.Attrs.Set(parts[len(parts)-1], a)
	}
}

// sinkAll lets modules read their parameters, buffers and constants as attributes instead of taking them as inputs.
func (u *unflattener) sinkAll() error {
	groups := map[any][][2]string{} // tensor or object -> (input, target)
	add := func(c any, input, target string) {
		id := c
		if t, ok := c.(*tensor.Tensor); ok {
			id = idOf(t)
		}
		if input == "" && len(groups[id]) > 0 {
			input = groups[id][0][0]
		}
		if input != "" {
			groups[id] = append(groups[id], [2]string{input, target})
		}
	}
	used := map[string]bool{}
	state := func(name string) any {
		if t, ok := u.parts.State.Get(name); ok {
			return t
		}
		c, _ := u.parts.Constants.Get(name)
		return c
	}
	for i := range u.parts.Signature.Inputs {
		s := &u.parts.Signature.Inputs[i]
		switch s.Kind {
		case export.Parameter, export.Buffer, export.ConstantTensor:
			t, err := u.p.InputTensor(s)
			if err != nil {
				return err
			}
			add(t, s.Arg.ArgName(), s.Target)
		case export.CustomObj:
			add(state(s.Target), s.Arg.ArgName(), s.Target)
		default:
			continue
		}
		used[s.Target] = true
	}
	for _, names := range [][]string{u.parts.Constants.Keys(), u.parts.State.Keys()} {
		for _, name := range names {
			if !used[name] {
				add(state(name), "", name)
			}
		}
	}
	s := &sinker{u: u, targets: map[string][][]string{}, removed: map[*Submodule]map[string]bool{}}
	for _, list := range groups {
		var targets [][]string
		for _, pair := range list {
			targets = append(targets, strings.Split(pair[1], "."))
		}
		for _, pair := range list {
			s.targets[pair[0]] = targets
		}
	}
	s.sink(u.root, nil)
	for i, in := range u.root.Graph.Inputs {
		if in.Value != nil && s.targets[in.Value.Name] != nil {
			return &UnflattenError{in.Name, fmt.Sprintf("input %d, %s, belongs to no module", i, in.Name)}
		}
	}
	return nil
}

// sinker goes through the hierarchy.
type sinker struct {
	u       *unflattener
	targets map[string][][]string // input -> paths of what it may be
	removed map[*Submodule]map[string]bool
}

// sink replaces inputs of a module, which stands at scope, after those of its children.
func (s *sinker) sink(m *Submodule, scope []string) {
	if s.removed[m] != nil {
		return
	}
	s.removed[m] = map[string]bool{}
	for name, c := range m.Children.All() {
		s.sink(c, append(slices.Clone(scope), withoutCall(name)))
	}
	g := s.u.graphs[m]
	if g == nil || len(g.Nodes) == 0 && len(g.Inputs) == 0 {
		return
	}
	for _, n := range g.Nodes {
		if n.Kind != export.CallModule {
			continue
		}
		gone := s.removed[m.moduleAt(n.Target)]
		n.Args = slices.DeleteFunc(n.Args, func(a export.NamedArg) bool {
			v, ok := a.Value.(*export.Value)
			return ok && a.Kind != export.Keyword && gone[v.Name]
		})
	}
	var reads []*export.Node
	for _, in := range slices.Clone(g.Inputs) {
		if in.Value == nil {
			continue
		}
		path := s.pathWithin(in.Value.Name, scope)
		if path == nil {
			continue
		}
		if g.uses(in.Value) {
			name := strings.Join(path, ".")
			v := *in.Value
			v.Name = snakeCase(name)
			n := &export.Node{Kind: export.GetAttr, Name: v.Name, Target: name, Outputs: []export.Argument{&v}, Metadata: map[string]string{}}
			g.insert(n)
			g.Nodes = g.Nodes[:len(g.Nodes)-1]
			reads = append(reads, n)
			g.replace(in.Value, &v)
		}
		g.Inputs = slices.DeleteFunc(g.Inputs, func(x export.GraphInput) bool { return x.Value == in.Value })
		s.removed[m][in.Value.Name] = true
	}
	slices.Reverse(reads) // each goes right behind the inputs
	g.Nodes = append(reads, g.Nodes...)
}

// pathWithin is the path, seen from scope, of what an input stands for; nil if it stands for nothing there.
func (s *sinker) pathWithin(input string, scope []string) []string {
	for _, t := range s.targets[input] {
		if len(t) > len(scope) && slices.Equal(t[:len(scope)], scope) {
			return t[len(scope):]
		}
	}
	return nil
}
