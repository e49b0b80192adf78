package schema

import "strconv"

// object is a JSON object in its order. Upgraders work on trees of nil, bool, number, string, []any and *object.
type object struct {
	keys []string
	vals map[string]any
}

// number is the text of a number.
type number string

func newObject(pairs ...any) *object {
	o := &object{vals: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) set(key string, v any) {
	if _, ok := o.vals[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = v
}

func (o *object) remove(key string) {
	if _, ok := o.vals[key]; !ok {
		return
	}
	delete(o.vals, key)
	for i, k := range o.keys {
		if k == key {
			o.keys = append(o.keys[:i:i], o.keys[i+1:]...)
			return
		}
	}
}

// obj, list and text give a member of the type asked for, or an empty one: what is malformed stays for the decoder to report.
func (o *object) obj(key string) *object {
	if v, ok := o.vals[key].(*object); ok {
		return v
	}
	return newObject()
}

func (o *object) list(key string) []any {
	v, _ := o.vals[key].([]any)
	return v
}

func (o *object) text(key string) string {
	v, _ := o.vals[key].(string)
	return v
}

// tree reads any value.
func (r *reader) tree() any {
	first := true
	switch r.next() {
	case '{':
		o := newObject()
		if r.enter('{') {
			for r.more(&first, '}') {
				k := r.str()
				if r.expect(':') {
					if _, dup := o.vals[k]; dup {
						r.fail("the key occurs twice")
					}
					o.set(k, r.tree())
				}
				if r.under(k) {
					return nil
				}
			}
		}
		return o
	case '[':
		l := []any{}
		if r.enter('[') {
			for r.more(&first, ']') {
				l = append(l, r.tree())
				if r.under(strconv.Itoa(len(l) - 1)) {
					return nil
				}
			}
		}
		return l
	case '"':
		return r.str()
	case 't', 'f':
		return r.boolean()
	case 'n':
		r.null()
		return nil
	}
	return number(r.number())
}

// tree writes any value.
func (w *writer) tree(v any) {
	switch v := v.(type) {
	case nil:
		w.raw("null")
	case bool:
		w.boolean(v)
	case number:
		w.raw(string(v))
	case string:
		w.str(v)
	case []any:
		w.raw("[")
		for i, x := range v {
			if i > 0 {
				w.raw(", ")
			}
			w.tree(x)
		}
		w.raw("]")
	case *object:
		w.raw("{")
		for i, k := range v.keys {
			if i > 0 {
				w.raw(", ")
			}
			w.str(k)
			w.raw(": ")
			w.tree(v.vals[k])
		}
		w.raw("}")
	}
}

// each calls f for every object of the tree, parents first.
func each(v any, f func(*object)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			each(x, f)
		}
	case *object:
		f(v)
		for _, k := range v.keys {
			each(v.vals[k], f)
		}
	}
}

// graphs calls f for the program's graph and all its subgraphs, inner ones first.
func graphs(program *object, f func(g *object)) {
	var walk func(g *object)
	walk = func(g *object) {
		for _, n := range g.list("nodes") {
			if n, ok := n.(*object); ok {
				for _, in := range n.list("inputs") {
					if in, ok := in.(*object); ok {
						if sub, ok := in.obj("arg").vals["as_graph"].(*object); ok {
							walk(sub.obj("graph"))
						}
					}
				}
			}
		}
		f(g)
	}
	walk(program.obj("graph_module").obj("graph"))
}

// nodes calls f for every node of every graph.
func nodes(program *object, f func(g, n *object)) {
	graphs(program, func(g *object) {
		for _, n := range g.list("nodes") {
			if n, ok := n.(*object); ok {
				f(g, n)
			}
		}
	})
}
