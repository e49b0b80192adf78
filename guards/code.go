package guards

import (
	"fmt"
	"strconv"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// guard is one recorded expression. Its symbols are #0, #1, ...: places in the set's list of sources.
type guard struct {
	expr *symbolic.Expr
	ints symbolic.IntFunc // nil if the guard computes with floats or strings
	text string
	used []int // places of its sources, each once
}

func (s *Set) addGuard(text string, slots map[source]int) error {
	g := guard{text: text}
	e, err := symbolic.ParseSource(text, func(name, rest string) (*symbolic.Expr, int, error) {
		if name != "L" {
			return nil, 0, fmt.Errorf("unknown name %s", name)
		}
		src, _, n, err := resolve(s.paths, rest)
		if err == nil {
			err = s.checkSource(src)
		}
		if err != nil {
			return nil, 0, err
		}
		i, ok := slots[src]
		if !ok {
			i = len(s.sources)
			slots[src] = i
			s.sources = append(s.sources, src)
		}
		g.use(i)
		return symbolic.Symbol("#"+strconv.Itoa(i), false), n, nil
	})
	if err != nil {
		return err
	}
	if err := e.Known(); err != nil {
		return err
	}
	unknown := ""
	e.Symbols(func(name string) {
		if name[0] != '#' {
			unknown = name
		}
	})
	if unknown != "" {
		return fmt.Errorf("unknown name %s", unknown)
	}
	g.expr = e
	g.ints = symbolic.CompileInt(e, func(name string) (int, bool) {
		i, err := strconv.Atoi(name[1:])
		return i, err == nil
	})
	s.guards = append(s.guards, g)
	return nil
}

func (g *guard) use(slot int) {
	for _, i := range g.used {
		if i == slot {
			return
		}
	}
	g.used = append(g.used, slot)
}

// checkSource refuses a source that the input cannot have.
func (s *Set) checkSource(src source) error {
	in := &s.inputs[src.input]
	switch {
	case src.what == 'v' && in.Tensor:
		return fmt.Errorf("%s is a tensor, not a number", in.Name)
	case src.what != 'v' && !in.Tensor:
		return fmt.Errorf("%s is no tensor", in.Name)
	case (src.what == 's' || src.what == 't') && src.dim >= len(in.Sizes):
		return fmt.Errorf("%s has %d dimensions", in.Name, len(in.Sizes))
	}
	return nil
}

func (s *Set) checkGuards(leaves []any) error {
	if len(s.guards) == 0 {
		return nil
	}
	vals := make([]int64, len(s.sources))
	for i, src := range s.sources {
		vals[i], _ = src.integer(leaves)
	}
	for i := range s.guards {
		g := &s.guards[i]
		if g.ints != nil && s.allInts(g, leaves) {
			if v, ok := g.ints(vals); ok && v != 0 {
				continue
			}
		}
		if err := s.evaluate(g, leaves); err != nil {
			return err
		}
	}
	return nil
}

// allInts reports that a guard's sources are integers in this call; sizes always are.
func (s *Set) allInts(g *guard, leaves []any) bool {
	for _, i := range g.used {
		if src := s.sources[i]; src.what == 'v' {
			if _, ok := asInt(leaves[src.input]); !ok {
				return false
			}
		}
	}
	return true
}

// evaluate is the slow way, over values of any type, that also words the errors.
func (s *Set) evaluate(g *guard, leaves []any) error {
	ok, err := g.expr.EvalBool(func(n string) (any, bool) {
		i, err := strconv.Atoi(n[1:])
		if err != nil {
			return nil, false
		}
		v := s.sources[i].value(leaves)
		if _, isTensor := v.(*tensor.Tensor); isTensor || v == nil {
			return nil, false
		}
		return v, true
	})
	if err == nil && ok {
		return nil
	}
	e := &Error{Expr: s.message(g)}
	for n, i := range g.used {
		src := s.sources[i]
		if n == 0 {
			e.Path = s.inputs[src.input].Name
		}
		e.Values = append(e.Values, Value{s.text(src), src.value(leaves)})
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", e, err)
	}
	return e
}

// message writes a guard over the user's names.
func (s *Set) message(g *guard) string {
	return unparse(g.text, func(rest string) (string, int, error) {
		src, path, n, err := resolve(s.paths, rest)
		if err != nil {
			return "", 0, err
		}
		return s.inputs[src.input].Name + rest[path:n], n, nil
	})
}
