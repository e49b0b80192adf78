package passes

import (
	"maps"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// Number records a call of target whose only result is a number with the value of e.
func (r *Recorder) Number(target string, kind export.ValueKind, e *symbolic.Expr, args ...export.NamedArg) *export.Value {
	v := r.d.number(target, kind, e, args)
	if kind == export.SymIntKind {
		r.d.syms.bindValue(e, v)
	}
	return v
}

// Condition records the computation of a comparison, or of a combination of such, over the symbols of the graph.
func (r *Recorder) Condition(e *symbolic.Expr) export.Argument { return r.d.condition(e) }

// SetHint gives a symbol that appears while recording the value that comparisons see.
func (r *Recorder) SetHint(symbol string, v int64) { r.d.syms.hints[symbol] = v }

func (r *recorder) number(target string, kind export.ValueKind, e *symbolic.Expr, args []export.NamedArg) *export.Value {
	n := &export.Node{Target: target, Op: r.build.Reg.Lookup(target), Args: args, Metadata: maps.Clone(r.metadata)}
	n.Name = r.names.Create(nodeName(target))
	v := r.value(n.Name, kind)
	v.Def, v.Sym = n, e
	if kind == export.SymIntKind && !hasUnbacked(e) {
		if h, err := e.EvalInt(r.syms.env); err == nil {
			v.Hint = h
		}
	}
	n.Outputs = []export.Argument{v}
	r.g.Nodes = append(r.g.Nodes, n)
	return v
}

func positional(name string, v export.Argument) export.NamedArg {
	return export.NamedArg{Name: name, Value: v, Kind: export.Positional}
}

// comparisons are Python's functions for relations, and those with the sides exchanged.
var comparisons = map[symbolic.Op][2]string{
	"Equality": {"_operator.eq", "_operator.eq"}, "Unequality": {"_operator.ne", "_operator.ne"},
	"LessThan": {"_operator.le", "_operator.ge"}, "StrictLessThan": {"_operator.lt", "_operator.gt"},
	"GreaterThan": {"_operator.ge", "_operator.le"}, "StrictGreaterThan": {"_operator.gt", "_operator.lt"},
}

var exchanged = map[symbolic.Op]symbolic.Op{"LessThan": "GreaterThan", "StrictLessThan": "StrictGreaterThan", "GreaterThan": "LessThan", "StrictGreaterThan": "StrictLessThan"}

var logical = map[symbolic.Op]string{"And": "_operator.and_", "Or": "_operator.or_"}

// condition is the graph's value of a condition, made where there is none yet.
func (r *recorder) condition(e *symbolic.Expr) export.Argument {
	if e.Op == symbolic.OpBool {
		return e.I != 0
	}
	key := e.Srepr()
	if v, ok := r.syms.values[key]; ok {
		return v
	}
	var v *export.Value
	switch {
	case e.Op == "Not":
		v = r.number("torch.sym_not", export.SymBoolKind, e, []export.NamedArg{positional("a", r.condition(e.Args[0]))})
	case logical[e.Op] != "":
		left := r.condition(e.Args[0])
		for i, a := range e.Args[1:] {
			part := e
			if i < len(e.Args)-2 {
				part = &symbolic.Expr{Op: e.Op, Args: e.Args[:i+2]}
			}
			left = r.number(logical[e.Op], export.SymBoolKind, part, []export.NamedArg{positional("a", left), positional("b", r.condition(a))})
		}
		v, _ = left.(*export.Value)
	default:
		v = r.comparison(e)
	}
	r.syms.set(key, v)
	return v
}

func (r *recorder) comparison(e *symbolic.Expr) *export.Value {
	targets, ok := comparisons[e.Op]
	if !ok {
		panic(&unrecordable{"no value of the graph is " + e.String()})
	}
	left, right, target := r.side(e.Args[0]), r.side(e.Args[1]), targets[0]
	if _, is := left.(*export.Value); !is { // Python asks the side that is no plain number
		left, right, target = right, left, targets[1]
		if op, ok := exchanged[e.Op]; ok {
			e = &symbolic.Expr{Op: op, Args: []*symbolic.Expr{e.Args[1], e.Args[0]}}
		}
	}
	return r.number(target, export.SymBoolKind, e, []export.NamedArg{positional("a", left), positional("b", right)})
}

func (r *recorder) side(e *symbolic.Expr) export.Argument {
	if e.Op == symbolic.OpFloat {
		return e.F
	}
	return r.syms.expr(e)
}
