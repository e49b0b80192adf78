package symbolic

import (
	"fmt"
	"strconv"
	"strings"
)

// String is the expression in sympy's str form, such as "2*s0 + 1".
func (e *Expr) String() string { return e.text(0) }

// Precedences of the printed form.
const (
	precOr = iota
	precAnd
	precNot
	precRel
	precAdd
	precMul
	precPow
	precAtom
)

func (e *Expr) text(outer int) string {
	s, prec := e.form()
	if prec < outer {
		return "(" + s + ")"
	}
	return s
}

func (e *Expr) form() (string, int) {
	switch e.Op {
	case OpSymbol:
		return e.Name, precAtom
	case OpInt:
		if e.I < 0 {
			return strconv.FormatInt(e.I, 10), precAdd
		}
		return strconv.FormatInt(e.I, 10), precAtom
	case OpFloat:
		return formatFloat(e.F), precAtom
	case OpBool:
		if e.I != 0 {
			return "True", precAtom
		}
		return "False", precAtom
	case OpString:
		return "'" + e.Name + "'", precAtom
	case "Add":
		return e.sumText(), precAdd
	case "Mul":
		return e.productText()
	case "Pow", "PowByNatural":
		if len(e.Args) == 2 {
			return e.Args[0].text(precAtom) + "**" + e.Args[1].text(precAtom), precPow
		}
	case "FloorDiv":
		if len(e.Args) == 2 {
			// PyTorch gives this class the precedence of a relation, so that it stands in parentheses of its own within a sum
			return "(" + e.Args[0].text(precAtom) + "//" + e.Args[1].text(precAtom) + ")", precRel
		}
	case "Mod", "PythonMod":
		return string(e.Op) + "(" + e.join(", ", precOr) + ")", precRel
	case "ExprCondPair":
		return "(" + e.join(", ", precOr) + ")", precAtom
	case "Not":
		return "~" + e.Args[0].text(precAtom), precNot
	case "And":
		return e.join(" & ", precRel+1), precAnd
	case "Or":
		return e.join(" | ", precRel+1), precOr
	case "LessThan":
		return e.join(" <= ", precAdd), precRel
	case "StrictLessThan":
		return e.join(" < ", precAdd), precRel
	case "GreaterThan":
		return e.join(" >= ", precAdd), precRel
	case "StrictGreaterThan":
		return e.join(" > ", precAdd), precRel
	case "Equality":
		return "Eq(" + e.join(", ", precOr) + ")", precAtom
	case "Unequality":
		return "Ne(" + e.join(", ", precOr) + ")", precAtom
	}
	return string(e.Op) + "(" + e.join(", ", precOr) + ")", precAtom
}

func (e *Expr) join(sep string, prec int) string {
	parts := make([]string, len(e.Args))
	for i, a := range e.Args {
		parts[i] = a.text(prec)
	}
	return strings.Join(parts, sep)
}

func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eInN") {
		s += ".0"
	}
	return s
}

// sumText puts the constant last, as sympy does, but for 10 - u0: a positive constant and a negative multiple.
func (e *Expr) sumText() string {
	if len(e.Args) == 2 {
		c, m := e.Args[0], e.Args[1]
		if c.Op != OpInt {
			c, m = m, c
		}
		if c.Op == OpInt && c.I > 0 && m.Op == "Mul" && len(m.Args) == 2 && m.Args[0].Op == OpInt && m.Args[0].I < 0 {
			return c.text(precAdd) + " - " + strings.TrimPrefix(m.text(precAdd), "-")
		}
	}
	var b strings.Builder
	write := func(a *Expr) {
		t := a.text(precAdd)
		switch {
		case b.Len() == 0:
			b.WriteString(t)
		case strings.HasPrefix(t, "-"):
			b.WriteString(" - " + t[1:])
		default:
			b.WriteString(" + " + t)
		}
	}
	for _, a := range e.Args {
		if a.Op != OpInt {
			write(a)
		}
	}
	for _, a := range e.Args {
		if a.Op == OpInt {
			write(a)
		}
	}
	return b.String()
}

func (e *Expr) productText() (string, int) {
	args := e.Args
	sign := ""
	if len(args) > 1 && args[0].Op == OpInt && args[0].I == -1 {
		sign, args = "-", args[1:]
	}
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = a.text(precMul)
		if i == 0 && a.Op == OpInt {
			parts[i] = fmt.Sprint(a.I)
		}
	}
	return sign + strings.Join(parts, "*"), precMul
}

// Srepr is the expression in sympy's srepr form, as current archives hold it.
func (e *Expr) Srepr() string {
	switch e.Op {
	case OpSymbol:
		switch {
		case strings.HasPrefix(e.Name, "z"):
			return fmt.Sprintf("Symbol('%s')", e.Name)
		case e.Positive:
			return fmt.Sprintf("Symbol('%s', positive=True, integer=True)", e.Name)
		}
		return fmt.Sprintf("Symbol('%s', integer=True)", e.Name)
	case OpInt:
		return fmt.Sprintf("Integer(%d)", e.I)
	case OpFloat:
		return fmt.Sprintf("Float('%s', precision=53)", formatFloat(e.F))
	case OpBool:
		if e.I != 0 {
			return "true"
		}
		return "false"
	case OpString:
		return "'" + e.Name + "'"
	}
	parts := make([]string, len(e.Args))
	for i, a := range e.Args {
		parts[i] = a.Srepr()
	}
	return string(e.Op) + "(" + strings.Join(parts, ", ") + ")"
}
