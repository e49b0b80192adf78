package interp

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/pytree"
)

// code is a graph made ready to run: each node bound to what executes it, arguments converted as far as they are constant.
type code struct {
	graph   *export.Graph
	steps   []step
	outputs []ref
	nvals   int
}

// step is one node.
type step struct {
	node *export.Node
	op   *aten.Op // nil for functions and higher-order operators
	args []ref    // in schema order for op; positional for the others
	kw   []kwRef  // keyword arguments of the others
	fn   scalarFunc
	hop  hopFunc
	// batch is set for vmap's own calls.
	batch batchFunc
	free  []int // values that nobody uses after this step
}

type kwRef struct {
	name string
	ref  ref
}

// ref is an argument: a constant, a value of the frame, or a list that holds values.
type ref struct {
	kind refKind
	val  any   // constant
	id   int   // value
	list []ref // list
}

type refKind uint8

const (
	constRef refKind = iota
	valueRef
	listRef   // becomes []any
	tensorRef // list of tensors: becomes []*aten.Value, or []any if it mixes in numbers
	absentRef // an argument left at its default
)

// Missing names an operator that the registry lacks, with the nodes that want it.
type Missing struct {
	Target string
	Nodes  []string
}

// MissingError lists every operator of a program that cannot run here.
type MissingError struct{ Ops []Missing }

// Error lists the operators, most used first.
func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "interp: the program needs %d operators that are not available:", len(e.Ops))
	for _, m := range e.Ops {
		fmt.Fprintf(&b, " %s (%d nodes, first %s);", m.Target, len(m.Nodes), m.Nodes[0])
	}
	b.WriteString(" register them with a custom operator registry, or export the model after run_decompositions()")
	return b.String()
}

// compiler binds graphs and collects what is missing.
type compiler struct {
	reg     *aten.Registry
	missing map[string][]string
	order   []string
}

func (c *compiler) miss(n *export.Node, what string) {
	if c.missing[what] == nil {
		c.order = append(c.order, what)
	}
	c.missing[what] = append(c.missing[what], n.Name)
}

func (c *compiler) err() error {
	if len(c.order) == 0 {
		return nil
	}
	e := &MissingError{}
	for _, t := range c.order {
		e.Ops = append(e.Ops, Missing{t, c.missing[t]})
	}
	return e
}

// compile binds all nodes of g. Unknown operators are collected, not returned; other faults are errors.
func (c *compiler) compile(g *export.Graph) (*code, error) {
	k := &code{graph: g, nvals: len(g.Values)}
	for _, n := range g.Nodes {
		if skippable(n.Target) {
			continue
		}
		s, err := c.bind(n)
		if err != nil {
			return nil, fmt.Errorf("interp: node %s (%s): %w", n.Name, n.Target, err)
		}
		k.steps = append(k.steps, s)
	}
	for _, o := range g.Outputs {
		r, err := c.ref(o)
		if err != nil {
			return nil, fmt.Errorf("interp: graph output: %w", err)
		}
		k.outputs = append(k.outputs, r)
	}
	k.liveness()
	return k, nil
}

// skippable names calls that mean nothing when no gradients are computed.
func skippable(target string) bool {
	switch target {
	case "torch._C._set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled", "torch.ops.torchvision._cuda_version.default",
		"torch._functorch.predispatch.lazy_load_decompositions":
		return true
	}
	return false
}

func (c *compiler) bind(n *export.Node) (step, error) {
	s := step{node: n}
	switch n.Kind {
	case export.CallModule:
		s.hop = runCallModule
		return s, c.plain(&s, n)
	case export.GetAttr:
		s.hop = runGetAttr
		return s, nil
	}
	if hop, ok := hops[n.Target]; ok {
		s.hop, s.batch = hop, batchFuncs[n.Target]
		return s, c.plain(&s, n)
	}
	if fn, ok := scalarFuncs[n.Target]; ok {
		s.fn = fn
		err := c.plain(&s, n)
		if err == nil && len(s.kw) > 0 {
			err = fmt.Errorf("%s takes no keyword arguments", n.Target)
		}
		return s, err
	}
	op := n.Op
	if op == nil {
		op = c.reg.Lookup(n.Target)
	}
	if op == nil {
		c.miss(n, n.Target)
		return s, nil
	}
	s.op = op
	return s, c.schemaArgs(&s, n)
}

// plain binds the arguments of functions and higher-order operators, which have no schema.
func (c *compiler) plain(s *step, n *export.Node) error {
	for _, a := range n.Args {
		r, err := c.ref(a.Value)
		if err != nil {
			return err
		}
		if a.Kind == export.Keyword {
			s.kw = append(s.kw, kwRef{a.Name, r})
		} else {
			s.args = append(s.args, r)
		}
	}
	return nil
}

// schemaArgs binds arguments by the names of the operator's schema; constants are converted once.
func (c *compiler) schemaArgs(s *step, n *export.Node) error {
	sig := s.op.Signature()
	s.args = make([]ref, len(sig.Params))
	for i := range s.args {
		s.args[i].kind = absentRef
	}
	for pos, a := range n.Args {
		i := pos
		if a.Name != "" {
			i = -1
			for j := range sig.Params {
				if sig.Params[j].Name == a.Name {
					i = j
				}
			}
		}
		if i < 0 || i >= len(sig.Params) {
			return fmt.Errorf("argument %q is not in the schema %v", a.Name, sig)
		}
		if s.args[i].kind != absentRef {
			return fmt.Errorf("argument %q is given twice", a.Name)
		}
		r, err := c.ref(a.Value)
		if err != nil {
			return err
		}
		if r.kind == constRef {
			if r.val, err = s.op.ConvertArg(i, r.val); err != nil {
				return err
			}
		}
		s.args[i] = r
	}
	for i := range s.args {
		if s.args[i].kind == absentRef {
			v, err := s.op.Default(i)
			if err != nil {
				return err
			}
			s.args[i] = ref{val: v}
		}
	}
	return nil
}

// ref turns a graph argument into a reference; subgraphs are compiled.
func (c *compiler) ref(a export.Argument) (ref, error) {
	switch a := a.(type) {
	case *export.Value:
		return ref{kind: valueRef, id: a.ID}, nil
	case []*export.Value:
		r := ref{kind: tensorRef, list: make([]ref, len(a))}
		for i, v := range a {
			if v != nil {
				r.list[i] = ref{kind: valueRef, id: v.ID}
			}
		}
		return r, nil
	case [][]*export.Value:
		r := ref{kind: listRef, list: make([]ref, len(a))}
		for i, v := range a {
			r.list[i], _ = c.ref(v)
		}
		return r, nil
	case []any:
		r := ref{kind: listRef, list: make([]ref, len(a))}
		dynamic := false
		for i, v := range a {
			x, err := c.ref(v)
			if err != nil {
				return ref{}, err
			}
			_, dict := x.val.(*dictRef)
			dynamic = dynamic || x.kind != constRef || dict
			r.list[i] = x
		}
		if !dynamic {
			return ref{val: a}, nil
		}
		return r, nil
	case *export.Subgraph:
		k, err := c.compile(a.Graph)
		if err != nil {
			return ref{}, fmt.Errorf("subgraph %s: %w", a.Name, err)
		}
		return ref{val: k}, nil
	case export.Tuple:
		r, err := c.ref([]any(a))
		if err == nil && r.kind == constRef {
			r.val = pytree.Tuple(a)
		}
		return r, err
	case *export.Dict:
		d := &dictRef{keys: a.Keys}
		for _, v := range a.Values {
			r, err := c.ref(v)
			if err != nil {
				return ref{}, err
			}
			d.vals = append(d.vals, r)
		}
		return ref{val: d}, nil
	case export.Operator:
		op := c.reg.Lookup(string(a))
		if op == nil {
			if hop, ok := hops[string(a)]; ok {
				return ref{val: hop}, nil
			}
			c.miss(&export.Node{Name: "(argument)"}, string(a))
			return ref{}, nil
		}
		return ref{val: op}, nil
	}
	return ref{val: a}, nil
}

// dictRef is a mapping argument of a higher-order operator.
type dictRef struct {
	keys []string
	vals []ref
}

// liveness finds for each step the values that are dead after it.
func (k *code) liveness() {
	last := make([]int, k.nvals)
	for i := range last {
		last[i] = -1
	}
	use := func(i int) func(r ref) {
		var f func(r ref)
		f = func(r ref) {
			switch r.kind {
			case valueRef:
				last[r.id] = i
			case listRef, tensorRef:
				for _, x := range r.list {
					f(x)
				}
			}
			if d, ok := r.val.(*dictRef); ok {
				for _, x := range d.vals {
					f(x)
				}
			}
		}
		return f
	}
	for i := range k.steps {
		for _, r := range k.steps[i].args {
			use(i)(r)
		}
		for _, r := range k.steps[i].kw {
			use(i)(r.ref)
		}
		for _, o := range k.steps[i].node.Outputs {
			export.EachValue(o, func(v *export.Value) { last[v.ID] = max(last[v.ID], i) })
		}
	}
	for _, r := range k.outputs {
		use(len(k.steps))(r)
	}
	for id, i := range last {
		if i >= 0 && i < len(k.steps) {
			k.steps[i].free = append(k.steps[i].free, id)
		}
	}
}
