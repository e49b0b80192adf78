package tracer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/pytree"
)

// moduleCall is a call of a sub-module whose signature is preserved.
type moduleCall struct {
	path    string // with the number of the call: l, l@1
	in, out []*Tensor
	done    bool
}

// checkPreserved refuses paths that no sub-module has.
func (e *exporter) checkPreserved() error {
	for _, path := range e.preserve {
		if !slices.ContainsFunc(e.tree.modules[1:], func(c part) bool { return c.name == path }) {
			var names []string
			for _, c := range e.tree.modules[1:] {
				names = append(names, c.name)
			}
			return invalid("PreserveModuleCallSignature: %T has no sub-module '%s'; it has %s", e.call.model, path, strings.Join(names, ", "))
		}
	}
	return nil
}

// begin notes a call of the module that was entered last, if its signature is preserved; else it gives nil.
func (s *session) begin(in []*Tensor) *moduleCall {
	f := s.stack[len(s.stack)-1]
	if s.rec == nil || s.parent != nil || f.path == "" || !slices.Contains(s.preserve, f.path) {
		return nil
	}
	c := &moduleCall{path: f.path, in: slices.Clone(in)}
	if f.n > 0 {
		c.path = fmt.Sprintf("%s@%d", f.path, f.n)
	}
	s.noted = append(s.noted, c)
	return c
}

func (c *moduleCall) end(out []*Tensor) {
	if c != nil {
		c.out, c.done = slices.Clone(out), true
	}
}

// keepCalls makes what enters and leaves the calls that were noted stay in the graph.
func (s *session) keepCalls() {
	for _, c := range s.noted {
		for _, t := range slices.Concat(c.in, c.out) {
			if t != nil {
				s.rec.Keep(s.rec.Node(s.lower(t).(*aten.Value)))
			}
		}
	}
}

// signatures describes the calls that were noted.
func (s *session) signatures() ([]export.ModuleCallEntry, error) {
	var out []export.ModuleCallEntry
	specs := map[string]string{}
	for _, c := range s.noted {
		in := pytree.Tuple{s.leaves(c.in), pytree.Dict{}}
		var result any = s.leaves(c.out)
		if len(c.out) == 1 {
			result = c.out[0]
		}
		sig := &export.ModuleCallSignature{}
		var err error
		if sig.Inputs, sig.InSpec, err = s.flat(in); err != nil {
			return nil, err
		}
		if sig.Outputs, sig.OutSpec, err = s.flat(result); err != nil {
			return nil, err
		}
		path, _, _ := strings.Cut(c.path, "@")
		if first, ok := specs[path]; ok && first != sig.InSpec {
			return nil, invalid("in_spec mismatch for %s: %s != %s; a module whose signature is preserved must be called with as many inputs each time", path, first, sig.InSpec)
		}
		specs[path] = sig.InSpec
		out = append(out, export.ModuleCallEntry{FQN: c.path, Signature: sig})
	}
	for _, path := range s.preserve {
		if _, ok := specs[path]; !ok && s.calls[path] > 0 {
			return nil, invalid("PreserveModuleCallSignature: the module %s is called by Within, which does not tell inputs and outputs; call it by tracer.Call", path)
		}
	}
	return out, nil
}

func (s *session) leaves(x []*Tensor) pytree.Tuple {
	out := make(pytree.Tuple, len(x))
	for i, t := range x {
		if t != nil {
			out[i] = t
		}
	}
	return out
}

// flat gives the graph's values of tensors in containers, and the containers' spec.
func (s *session) flat(x any) ([]export.Arg, string, error) {
	leaves, spec, err := (&pytree.Registry{}).Flatten(x)
	if err != nil {
		return nil, "", fmt.Errorf("tracer: a preserved signature: %w", err)
	}
	args := make([]export.Arg, len(leaves))
	for i, l := range leaves {
		t, ok := l.(*Tensor)
		if !ok || t == nil {
			args[i] = export.ConstantArg{}
			continue
		}
		v := s.rec.Node(s.lower(t).(*aten.Value))
		args[i] = export.TensorArg{Name: v.Name}
	}
	return args, spec.Encode(), nil
}

// moduleCalls are the program's entries: the model, its sub-modules, and further calls of those that are preserved.
func (e *exporter) moduleCalls(root *export.ModuleCallSignature, signatures []export.ModuleCallEntry) []export.ModuleCallEntry {
	out := []export.ModuleCallEntry{{Signature: root}}
	for _, c := range e.tree.modules[1:] {
		entry := export.ModuleCallEntry{FQN: c.name}
		for _, s := range signatures {
			if s.FQN == c.name {
				entry.Signature = s.Signature
			}
		}
		out = append(out, entry)
	}
	for _, s := range signatures {
		if strings.Contains(s.FQN, "@") {
			out = append(out, s)
		}
	}
	return out
}
