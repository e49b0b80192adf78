package passes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/export"
)

// merge leaves one of the calls of a module that compute the same. It gives for each name that is gone the one that took its place.
func (u *unflattener) merge() map[string]string {
	redirected := map[string]string{}
	for _, key := range u.seenKeys {
		calls := u.seen[key]
		for i, c := range calls {
			name := callName(c.path, c.call)
			target, err := accessor(c.parentPath, name)
			if err != nil {
				continue // enter has seen it succeed
			}
			replaced := false
			for _, earlier := range calls[:i] {
				if !u.equivalent(earlier.module, c.module) {
					continue
				}
				holder, last := c.parent.holderOf(target)
				if earlier.path == c.path {
					// The call is one of the same name: the name goes, the caller takes the other.
					holder.Children.Delete(last)
					first := callName(earlier.path, earlier.call)
					if c.node.Target, err = accessor(c.parentPath, first); err == nil {
						redirected[name] = first
					}
					break
				}
				if !replaced {
					// The module has two names in the model: both stay, for one module.
					holder.Children.Set(last, earlier.module)
					replaced = true
				}
			}
		}
	}
	return redirected
}

// equivalent compares graphs, and the specs that they refer to by number.
func (u *unflattener) equivalent(a, b *Submodule) bool {
	for name, x := range a.Attrs.All() {
		y, ok := b.Attrs.Get(name)
		if x.Spec != nil && (!ok || y.Spec == nil || !x.Spec.Equal(y.Spec)) {
			return false
		}
	}
	return u.graphOf(a).numbered().Equivalent(u.graphOf(b).numbered())
}

// numbered is the graph with its values listed.
func (g *moduleGraph) numbered() *export.Graph {
	g.number()
	return g.Graph
}

// holderOf gives the module that has the last part of a path as a child, and that part.
func (m *Submodule) holderOf(path string) (*Submodule, string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return m.moduleAt(path[:i]), path[i+1:]
	}
	return m, path
}

// dispatch puts several calls of a module with a preserved signature behind its one name.
func (u *unflattener) dispatch(redirected map[string]string) error {
	calls, names := map[string][]*Submodule{}, []string(nil)
	entries := slices.Clone(u.parts.ModuleCallGraph)
	slices.SortStableFunc(entries, func(a, b export.ModuleCallEntry) int { return numberOf(a.FQN) - numberOf(b.FQN) })
	for _, e := range entries {
		if e.FQN == "" || e.Signature == nil {
			continue
		}
		name := e.FQN
		if r, ok := redirected[name]; ok {
			name = r
		}
		m := u.root.moduleAt(name)
		if m == nil {
			return &UnflattenError{"", "the module call graph has a signature of " + e.FQN + ", which is never called"}
		}
		base := withoutCall(e.FQN)
		if calls[base] == nil {
			names = append(names, base)
		}
		calls[base] = append(calls[base], m)
	}
	for _, base := range names {
		list := calls[base]
		if len(list) < 2 {
			continue
		}
		for i := range list {
			name := callName(base, i)
			if _, gone := redirected[name]; !gone {
				holder, last := u.root.holderOf(name)
				holder.Children.Delete(last)
			}
		}
		holder, last := u.root.holderOf(base)
		attrs := &export.OrderedMap[*Attr]{}
		for name, a := range list[0].Attrs.All() {
			if a.Spec == nil {
				attrs.Set(name, a)
			}
		}
		holder.Children.Set(last, &Submodule{Type: list[0].Type, Children: list[0].Children, Attrs: attrs, Calls: list})
	}
	u.elide(u.root, "", calls, map[*Submodule]bool{})
	return nil
}

// numberOf is the number of a call in its name, 0 for the first.
func numberOf(name string) int {
	_, num, _ := strings.Cut(name, "@")
	n, _ := strconv.Atoi(num)
	return n
}

// elide takes the numbers off calls of modules that count by themselves.
func (u *unflattener) elide(m *Submodule, path string, calls map[string][]*Submodule, seen map[*Submodule]bool) {
	if seen[m] {
		return
	}
	seen[m] = true
	for _, c := range append([]*Submodule{m}, m.Calls...) {
		if g := u.graphs[c]; g != nil {
			for _, n := range g.Nodes {
				target := withoutCall(n.Target)
				if n.Kind == export.CallModule && calls[joined(path, target)] != nil {
					n.Target = target
				}
			}
		}
	}
	for name, c := range m.Children.All() {
		u.elide(c, joined(path, name), calls, seen)
	}
}

func joined(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// order puts modules in the order of the module call graph, those that were never called included.
func (u *unflattener) order(redirected map[string]string) {
	rank := map[string]int{}
	var names []string
	for _, e := range u.parts.ModuleCallGraph {
		if _, gone := redirected[e.FQN]; gone || strings.Contains(e.FQN, "@") {
			continue
		}
		if _, twice := rank[e.FQN]; !twice {
			rank[e.FQN] = len(rank)
			names = append(names, e.FQN)
		}
	}
	var others func(m *Submodule, path string, within map[*Submodule]bool)
	others = func(m *Submodule, path string, within map[*Submodule]bool) {
		if _, ok := rank[path]; !ok {
			rank[path] = len(rank)
			names = append(names, path)
		}
		if within[m] {
			return
		}
		within[m] = true
		for name, c := range m.Children.All() {
			others(c, joined(path, name), within)
		}
		delete(within, m)
	}
	others(u.root, "", map[*Submodule]bool{})
	for _, name := range names {
		if name == "" || u.root.moduleAt(name) != nil {
			continue
		}
		at := u.root
		parts := strings.Split(name, ".")
		for _, part := range parts {
			next, ok := at.Children.Get(part)
			if !ok {
				next = newSubmodule("")
				at.Children.Set(part, next)
			}
			at = next
		}
	}
	u.reorder(u.root, "", rank, map[*Submodule]bool{})
}

func (u *unflattener) reorder(m *Submodule, prefix string, rank map[string]int, within map[*Submodule]bool) {
	if within[m] {
		return
	}
	within[m] = true
	defer delete(within, m)
	keys := m.Children.Keys()
	place := func(key string) int {
		if r, ok := rank[prefix+key]; ok {
			return r
		}
		if r, ok := rank[withoutCall(prefix+key)]; ok {
			return r
		}
		return len(rank)
	}
	slices.SortStableFunc(keys, func(a, b string) int { return place(a) - place(b) })
	for _, k := range keys {
		c, _ := m.Children.Get(k)
		u.reorder(c, withoutCall(prefix+k)+".", rank, within)
		m.Children.Delete(k)
		m.Children.Set(k, c)
	}
}

// finish checks all graphs.
func (u *unflattener) finish() error {
	for m, g := range u.graphs {
		if m != u.root && len(g.Nodes) == 0 && len(g.Inputs) == 0 && len(g.Outputs) == 0 {
			m.Graph = nil
			continue
		}
		if err := g.numbered().Lint(); err != nil {
			return err
		}
	}
	return nil
}
