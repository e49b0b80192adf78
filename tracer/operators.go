package tracer

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
)

// operator is the full name of an operator that must be there: "mylib::scaled" is "mylib.scaled.default".
func (s *session) operator(name string) string {
	full := name
	if ns, rest, ok := strings.Cut(name, "::"); ok {
		full = ns + "." + rest
		if !strings.Contains(rest, ".") {
			full += ".default"
		}
	} else if strings.Count(name, ".") < 2 {
		full = "aten." + name
		if !strings.Contains(name, ".") {
			full += ".default"
		}
	}
	op := s.build.Reg.Lookup(full)
	switch {
	case op == nil && strings.HasPrefix(full, "aten."):
		panic(&UserError{Kind: InvalidInput, Msg: fmt.Sprintf("there is no operator %s", full)})
	case op == nil:
		panic(&UserError{Kind: InvalidInput, Msg: fmt.Sprintf("the operator %s is not registered: give it by tracer.WithOps", full)})
	case s.rec != nil && s.env.drafting() == nil && !describes(op):
		panic(&UserError{Kind: InvalidInput, Msg: fmt.Sprintf("%s: the operator has no function that describes its results (register_fake of torch.library): set its Shape", full)})
	case s.rec == nil && !computes(op):
		panic(&UserError{Kind: InvalidInput, Msg: fmt.Sprintf("%s: the operator has no kernel: set its CPU", full)})
	}
	return full
}

// describes reports that an operator's results are known without running it.
func describes(op *aten.Op) bool {
	return op.Signature().Namespace == "aten" || op.Shape != nil || op.Decomp != nil || op.Result != nil || len(op.Signature().Returns) == 0
}

// computes reports an operator that can be run.
func computes(op *aten.Op) bool {
	return op.CPU != nil || op.Decomp != nil || op.Dynamic != nil || op.Result != nil || op.IsView()
}
