package tracer

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// origin says where calls come from.
type origin struct {
	lines map[string][]string // of source files
	calls map[string]int      // of operators, by name
}

// metadata is what a node says of itself, as PyTorch's do: the modules around it, the lines of the code from Forward on, and which call
// of its operator it is.
func (s *session) metadata(op string) map[string]string {
	m := map[string]string{}
	parts := make([]string, len(s.stack))
	for i, f := range s.stack {
		parts[i] = f.key + "," + f.path + "," + f.kind
	}
	if len(parts) > 0 && s.parent == nil {
		m["nn_module_stack"] = strings.Join(parts, ";")
	}
	if s.origin.calls == nil {
		s.origin = origin{map[string][]string{}, map[string]int{}}
	}
	if trace := s.origin.trace(); trace != "" {
		m["stack_trace"] = trace
	}
	name := strings.Split(op, ".") // such as relu, add.Tensor or aten.add.Tensor
	base := name[max(0, len(name)-2)]
	s.origin.calls[base]++
	m["torch_fn"] = fmt.Sprintf("%s_%d;function.%s", base, s.origin.calls[base], base)
	return m
}

// trace is the code's way to the call, outermost first: the model's, and that of the layers of package nn.
func (o *origin) trace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var parts []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasSuffix(f.Function, "tracer.(*session).forward") {
			break
		}
		layer := strings.HasPrefix(f.Function, "github.com/pt2go/pt2/tracer/nn.")
		own := slices.ContainsFunc(ownPackages, func(p string) bool { return strings.HasPrefix(f.Function, p) })
		if f.Function == "" || own && !layer {
			continue
		}
		code := o.line(f.File, f.Line)
		if code == "" { // readers take the next line for the code
			code = f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		}
		parts = append(parts, fmt.Sprintf("File \"%s\", line %d, in %s\n    %s", f.File, f.Line, f.Function[strings.LastIndexByte(f.Function, '.')+1:], code))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n  ")
}

// line is the text of a line of a source file, "" where there is none.
func (o *origin) line(file string, n int) string {
	lines, ok := o.lines[file]
	if !ok {
		if text, err := os.ReadFile(file); err == nil {
			lines = strings.Split(string(text), "\n")
		}
		o.lines[file] = lines
	}
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[n-1])
}
