package schema

import (
	"fmt"
	"strings"
)

// An upgrade turns programs below a version into the form of that version. The steps run in order, each on the result of the
// one before, so each knows two neighbouring forms only.
type upgrade struct {
	to    SchemaVersion // programs below it need the step
	torch string        // the PyTorch version that first wrote the new form
	apply func(p *object)
}

var upgrades = []upgrade{
	{SchemaVersion{Major: 2}, "2.2", upgrade21},
	{SchemaVersion{Major: 5, Minor: 1}, "2.3", upgrade22},
	{SchemaVersion{Major: 5, Minor: 3}, "2.4", upgrade23},
	{SchemaVersion{Major: 7, Minor: 3}, "2.5", upgrade24},
	{SchemaVersion{Major: 8, Minor: 2}, "2.6", upgrade25},
	{SchemaVersion{Major: 8, Minor: 7}, "2.7", upgrade26},
}

func (v SchemaVersion) below(w SchemaVersion) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// upgradeText gives the text of a program in the current form; the text of a current one is given back as it is.
func upgradeText(b []byte, have SchemaVersion, opts Options) ([]byte, error) {
	if last := upgrades[len(upgrades)-1].to; !have.below(last) || have.Major == 0 {
		return b, nil
	}
	r := newReader(b, false)
	v := r.tree()
	r.end()
	if r.err != nil {
		return nil, r.err
	}
	p, ok := v.(*object)
	if !ok {
		return nil, &Error{Msg: "want an object"}
	}
	for _, u := range upgrades {
		if have.below(u.to) {
			u.apply(p)
		}
	}
	p.set("schema_version", newObject("major", number(fmt.Sprint(Current.Major)), "minor", number(fmt.Sprint(Current.Minor))))
	w := &writer{b: make([]byte, 0, len(b)+len(b)/8)}
	w.tree(p)
	return w.b, nil
}

// upgrade21 turns the form of PyTorch 2.1 into that of 2.2: specs instead of maps, the call convention in the module call graph,
// constants as inputs, hints and conditions as structs.
func upgrade21(p *object) {
	gm := p.obj("graph_module")
	g := gm.obj("graph")
	graphs(p, func(g *object) {
		values := g.obj("tensor_values")
		for _, k := range values.keys {
			if m, ok := values.obj(k).vals["meta"].(*object); ok {
				values.set(k, m)
			}
		}
	})
	each(p, func(o *object) {
		if h, ok := o.vals["hint"].(number); ok {
			o.set("hint", newObject("as_int", h))
		}
		if e, ok := o.vals["as_expr"].(string); ok {
			o.set("as_expr", newObject("expr_str", e, "hint", nil))
		}
	})
	nodes(p, func(_, n *object) {
		if n.text("target") == "torch.ops.map_impl" {
			n.set("target", "torch.ops.higher_order.map_impl")
		}
		meta := n.obj("metadata")
		if s := meta.text("nn_module_stack"); s != "" {
			meta.set("nn_module_stack", moduleStack(s))
		}
		if s := meta.text("source_fn"); s != "" {
			meta.remove("source_fn")
			meta.set("source_fn_stack", s)
		}
	})
	specs21(gm, g)
	if c, ok := gm.vals["call_spec"].(*object); ok {
		sig := newObject("inputs", []any{}, "outputs", []any{}, "in_spec", pairSpec(c.text("in_spec")), "out_spec", c.text("out_spec"))
		gm.set("module_call_graph", append([]any{newObject("fqn", "", "signature", sig)}, gm.list("module_call_graph")...))
	}
	gm.remove("call_spec")
	p.remove("equality_constraints")
	p.remove("example_inputs")
	p.set("dialect", "ATEN")
}

// moduleStack turns key:(path,type);key:(path,type) into key,path,type;key,path,type.
func moduleStack(text string) string {
	items := strings.Split(text, ");")
	for i, item := range items {
		item = strings.TrimSuffix(item, ")")
		if key, rest, ok := strings.Cut(item, ":("); ok {
			item = key + "," + rest
		}
		items[i] = item
	}
	return strings.Join(items, ";")
}

// specs21 makes the specs of 2.2 from the maps of 2.1. Constants stand in no input list there; they become the first inputs, and
// their contents stay in the graph's unknown field "constants" (see [Graph.InlineConstants]).
func specs21(gm, g *object) {
	old := gm.obj("signature")
	tensor := func(arg *object) (string, *object) {
		t := arg.obj("as_tensor")
		return t.text("name"), t
	}
	var inputs, ins, outs []any
	constants := g.obj("constants")
	for _, k := range constants.keys {
		name := newObject("name", k)
		inputs = append(inputs, newObject("as_tensor", name))
		ins = append(ins, newObject("tensor_constant", newObject("arg", name, "tensor_constant_name", k)))
	}
	if len(constants.keys) == 0 {
		g.remove("constants")
	}
	for _, in := range g.list("inputs") {
		arg, _ := in.(*object)
		if arg == nil {
			continue
		}
		inputs = append(inputs, arg)
		name, t := tensor(arg)
		if target, ok := old.obj("inputs_to_parameters").vals[name]; ok {
			ins = append(ins, newObject("parameter", newObject("arg", t, "parameter_name", target)))
		} else if target, ok := old.obj("inputs_to_buffers").vals[name]; ok {
			ins = append(ins, newObject("buffer", newObject("arg", t, "buffer_name", target)))
		} else {
			ins = append(ins, newObject("user_input", newObject("arg", arg)))
		}
	}
	for _, out := range g.list("outputs") {
		arg, _ := out.(*object)
		if arg == nil {
			continue
		}
		name, t := tensor(arg)
		if target, ok := old.obj("buffers_to_mutate").vals[name]; ok {
			outs = append(outs, newObject("buffer_mutation", newObject("arg", t, "buffer_name", target)))
		} else {
			outs = append(outs, newObject("user_output", newObject("arg", arg)))
		}
	}
	g.set("inputs", inputs)
	gm.set("signature", newObject("input_specs", ins, "output_specs", outs))
}

// pairSpec makes the (args, kwargs) pair of the args tuple that 2.1 wrote when there were no kwargs.
func pairSpec(text string) string {
	v := parseTree(text)
	l, _ := v.([]any)
	if len(l) != 2 {
		return text
	}
	root, _ := l[1].(*object)
	if root == nil || root.text("type") != "builtins.tuple" {
		return text
	}
	kids := root.list("children_spec")
	if len(kids) == 2 {
		args, _ := kids[0].(*object)
		kwargs, _ := kids[1].(*object)
		if args != nil && kwargs != nil && args.text("type") == "builtins.tuple" && kwargs.text("type") == "builtins.dict" {
			return text
		}
	}
	none := newObject("type", "builtins.dict", "context", "[]", "children_spec", []any{})
	pair := newObject("type", "builtins.tuple", "context", "null", "children_spec", []any{root, none})
	return treeText([]any{l[0], pair})
}

// parseTree parses a text within the text, nil if it is no JSON.
func parseTree(text string) any {
	r := newReader([]byte(text), false)
	v := r.tree()
	if r.end(); r.err != nil {
		return nil
	}
	return v
}

func treeText(v any) string {
	w := &writer{}
	w.tree(v)
	return string(w.b)
}

// upgrade22 turns the form of PyTorch 2.2 into that of 2.3: offsets as SymInt, the persistent flag, map with lists, all results of
// flash attention.
func upgrade22(p *object) {
	each(p, func(o *object) {
		if n, ok := o.vals["storage_offset"].(number); ok {
			o.set("storage_offset", newObject("as_int", n))
		}
	})
	for _, s := range p.obj("graph_module").obj("signature").list("input_specs") {
		if s, ok := s.(*object); ok {
			if b, ok := s.vals["buffer"].(*object); ok {
				if _, has := b.vals["persistent"]; !has {
					b.set("persistent", true) // 2.1 and 2.2 keep all buffers with the weights
				}
			}
		}
	}
	nodes(p, func(_, n *object) {
		switch n.text("target") {
		case "torch.ops.higher_order.map_impl":
			nestMap(n)
		case "torch.ops.aten._scaled_dot_product_flash_attention.default":
			if o := n.list("outputs"); len(o) == 7 {
				none := newObject("as_none", true)
				all := append([]any{}, o[:4]...)
				n.set("outputs", append(append(all, none, none), o[4:]...))
			}
		}
	})
}

// nestMap turns map's graph, count of mapped operands, operands... into graph, [mapped], [others].
func nestMap(n *object) {
	in := n.list("inputs")
	if len(in) < 2 {
		return
	}
	count := -1
	if second, ok := in[1].(*object); ok {
		if c, ok := second.obj("arg").vals["as_int"].(number); ok {
			fmt.Sscan(string(c), &count)
		}
	}
	operands := in[2:]
	if count < 0 || count > len(operands) {
		return
	}
	n.set("inputs", []any{in[0], listInput(operands[:count]), listInput(operands[count:])})
}

// listInput makes one positional list argument of tensor arguments.
func listInput(inputs []any) *object {
	names := []any{}
	for _, in := range inputs {
		if in, ok := in.(*object); ok {
			if t, ok := in.obj("arg").vals["as_tensor"].(*object); ok {
				names = append(names, t)
				continue
			}
			if s := in.obj("arg").obj("as_sym_int").text("as_name"); s != "" {
				names = append(names, newObject("name", s))
			}
		}
	}
	return newObject("name", "", "arg", newObject("as_tensors", names))
}

// upgrade23 turns the form of PyTorch 2.3 into that of 2.4: optional tensors as structs, named tuples by name, while_loop with
// additional inputs.
func upgrade23(p *object) {
	each(p, func(o *object) {
		if s, ok := o.vals["as_tensor"].(string); ok {
			o.set("as_tensor", newObject("name", s))
		}
	})
	nodes(p, func(_, n *object) {
		if in := n.list("inputs"); n.text("target") == "torch.ops.higher_order.while_loop" && len(in) == 3 {
			n.set("inputs", append(append([]any{}, in...), listInput(nil)))
		}
	})
	gm := p.obj("graph_module")
	fields := newObject()
	for _, e := range gm.list("module_call_graph") {
		e, _ := e.(*object)
		if e == nil {
			continue
		}
		if s, ok := e.vals["signature"].(*object); ok {
			for _, k := range []string{"in_spec", "out_spec"} {
				s.set(k, nameTuples(s.text(k), fields))
			}
		}
	}
	if len(fields.keys) > 0 {
		gm.set("treespec_namedtuple_fields", fields)
	}
}

// nameTuples replaces the contexts {"class_name", "fields"} of named tuples by the class's name and collects the fields.
func nameTuples(text string, fields *object) string {
	if !strings.Contains(text, "class_name") {
		return text
	}
	v := parseTree(text)
	if v == nil {
		return text
	}
	each(v, func(o *object) {
		if c, ok := o.vals["context"].(*object); ok && o.text("type") == "collections.namedtuple" {
			name := c.text("class_name")
			fields.set(name, newObject("field_names", c.list("fields")))
			o.set("context", name)
		}
	})
	return treeText(v)
}

// upgrade24 turns the form of PyTorch 2.4 into that of 2.5: a list of verifiers, and today's name of the no_grad wrapper.
func upgrade24(p *object) {
	if d := p.text("dialect"); d != "" && p.vals["verifiers"] == nil {
		p.set("verifiers", []any{d})
	}
	p.remove("dialect")
	nodes(p, func(_, n *object) {
		if n.text("target") == "torch._higher_order_ops.wrap.wrap_with_set_grad_enabled" {
			n.set("target", "torch.ops.higher_order.wrap_with_set_grad_enabled")
		}
	})
}

// upgrade25 turns the form of PyTorch 2.5 into that of 2.6: constant bools as such, open ranges as null.
func upgrade25(p *object) {
	for _, s := range p.obj("graph_module").obj("signature").list("input_specs") {
		if s, ok := s.(*object); ok {
			v := s.obj("constant_input").obj("value")
			if b, ok := v.vals["as_int"].(bool); ok {
				v.remove("as_int")
				v.set("as_bool", b)
			}
		}
	}
	ranges := p.obj("range_constraints")
	for _, k := range ranges.keys {
		r := ranges.obj(k)
		for _, b := range r.keys {
			switch r.vals[b] {
			// sys.maxsize, and what sympy's int_oo was before it had a name
			case number("9223372036854775807"), number("9223372036854775806"), number("-9223372036854775808"), number("-9223372036854775807"):
				r.set(b, nil)
			}
		}
	}
}

// upgrade26 turns the form of PyTorch 2.6 into that of 2.7: each result of a higher-order operator is an output of its own, and
// scan goes forward over the first dimension.
func upgrade26(p *object) {
	graphs(p, func(g *object) {
		var out []any
		for _, x := range g.list("nodes") {
			n, ok := x.(*object)
			if !ok || !strings.HasPrefix(n.text("target"), "torch.ops.higher_order.") {
				out = append(out, x)
				continue
			}
			spread(n)
			if in := n.list("inputs"); n.text("target") == "torch.ops.higher_order.scan" && len(in) == 6 {
				out = append(out, straightScan(g, n)...)
			} else {
				out = append(out, n)
			}
		}
		if out != nil {
			g.set("nodes", out)
		}
	})
}

// spread makes an output of each element of a list result.
func spread(n *object) {
	outs := n.list("outputs")
	if len(outs) != 1 {
		return
	}
	o, _ := outs[0].(*object)
	if o == nil {
		return
	}
	l, ok := o.vals["as_tensors"].([]any)
	if !ok {
		return
	}
	each := make([]any, len(l))
	for i, t := range l {
		each[i] = newObject("as_tensor", t)
	}
	n.set("outputs", each)
	n.set("is_hop_single_tensor_return", false)
}

// straightScan turns graph, [init], [xs], dim, reverse, [additional] into graph, [init], [xs], [additional]. Another dimension is
// moved to the front before the scan; a reversed scan goes over flipped inputs and its stacked results are flipped back.
func straightScan(g, n *object) []any {
	in := n.list("inputs")
	arg := func(i int) *object {
		o, _ := in[i].(*object)
		if o == nil {
			o = newObject()
		}
		return o.obj("arg")
	}
	dim, _ := arg(3).vals["as_int"].(number)
	reverse, _ := arg(4).vals["as_bool"].(bool)
	xs := append([]any{}, arg(2).list("as_tensors")...)
	values := g.obj("tensor_values")
	var before, after []any
	call := func(list *[]any, target, from, to string, args ...any) {
		inputs := []any{newObject("name", "self", "arg", newObject("as_tensor", newObject("name", from)))}
		for i := 0; i < len(args); i += 2 {
			inputs = append(inputs, newObject("name", args[i], "arg", args[i+1]))
		}
		*list = append(*list, newObject("target", target, "inputs", inputs,
			"outputs", []any{newObject("as_tensor", newObject("name", to))}, "metadata", newObject()))
	}
	flip := []any{"dims", newObject("as_ints", []any{number("0")})}
	for i, x := range xs {
		t, _ := x.(*object)
		if t == nil {
			continue
		}
		name := t.text("name")
		if dim != "0" {
			moved := name + "_scan_moved"
			call(&before, "torch.ops.aten.movedim.int", name, moved, "source", newObject("as_int", dim), "destination", newObject("as_int", number("0")))
			values.set(moved, toFront(values.obj(name), string(dim)))
			name = moved
		}
		if reverse {
			flipped := name + "_scan_flipped"
			call(&before, "torch.ops.aten.flip.default", name, flipped, flip...)
			values.set(flipped, values.obj(name))
			name = flipped
		}
		xs[i] = newObject("name", name)
	}
	if reverse {
		outs := append([]any{}, n.list("outputs")...)
		for i := len(arg(1).list("as_tensors")); i < len(outs); i++ {
			o, _ := outs[i].(*object)
			if o == nil {
				continue
			}
			name := o.obj("as_tensor").text("name")
			raw := name + "_scan_reversed"
			values.set(raw, values.obj(name))
			outs[i] = newObject("as_tensor", newObject("name", raw))
			call(&after, "torch.ops.aten.flip.default", raw, name, flip...)
		}
		n.set("outputs", outs)
	}
	n.set("inputs", []any{in[0], in[1], newObject("name", "", "arg", newObject("as_tensors", xs)), in[5]})
	return append(append(before, n), after...)
}

// toFront is the metadata of a tensor whose dimension dim has moved to the front.
func toFront(m *object, dim string) *object {
	var d int
	if _, err := fmt.Sscan(dim, &d); err != nil {
		return m
	}
	out := newObject()
	for _, k := range m.keys {
		out.set(k, m.vals[k])
	}
	for _, k := range []string{"sizes", "strides"} {
		l := m.list(k)
		i := d
		if i < 0 {
			i += len(l)
		}
		if i < 0 || i >= len(l) {
			return m
		}
		moved := append([]any{l[i]}, l[:i]...)
		out.set(k, append(moved, l[i+1:]...))
	}
	return out
}

// InlineConstants gives the constants that PyTorch 2.1 wrote into the graph: for each name the base64 text of a torch.save file
// of one tensor. The upgraded signature lists them as tensor constants of the same names.
func (g *Graph) InlineConstants() (Map[string], error) {
	text, ok := g.Fields().Get("constants")
	if !ok {
		return nil, nil
	}
	m, err := decode([]byte(text), mapOf(stringC), Options{})
	if err != nil {
		return nil, err
	}
	return *m, nil
}
