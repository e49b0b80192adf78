package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
)

type inspectFlags struct {
	name                                          string
	graph, signature, ops, weights, files, asJSON bool
	plan                                          bool
	without                                       []string
	inputs                                        string
}

func newInspectCommand() *cobra.Command {
	var f inspectFlags
	c := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Show what an archive holds",
		Long:  "Show what an archive holds: programs, inputs, outputs, ranges, weights, operators. Without flags a summary.",
		Example: `  pt2 inspect model.pt2
  pt2 inspect model.pt2 --ops          operators, and whether each can run here
  pt2 inspect model.pt2 --graph        the graph, node by node
  pt2 inspect model.pt2 --plan         what runs: fused kernels, and where their results lie
  pt2 inspect model.pt2 --json         everything for a program to read`,
		Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return inspect(args[0], &f, c.OutOrStdout()) },
	}
	fl := c.Flags()
	fl.StringVar(&f.name, "name", "", "program of the archive, if it has several")
	fl.BoolVar(&f.graph, "graph", false, "print the graph")
	fl.BoolVar(&f.signature, "signature", false, "print the graph signature")
	fl.BoolVar(&f.ops, "ops", false, "list operators and how each would run")
	fl.BoolVar(&f.weights, "weights", false, "list weights, buffers and constants")
	fl.BoolVar(&f.files, "files", false, "list the archive's records")
	fl.BoolVar(&f.plan, "plan", false, "print the plan for the example inputs, or those of --inputs")
	fl.StringVar(&f.inputs, "inputs", "", "file with inputs, for --plan")
	fl.StringSliceVar(&f.without, "without-pass", nil, "passes of the planner to leave out, for --plan")
	fl.BoolVar(&f.asJSON, "json", false, "print everything as JSON")
	return c
}

func inspect(path string, f *inspectFlags, w io.Writer) error {
	c, err := loader.Open(path, loader.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	if f.files {
		return listFiles(c, w)
	}
	if f.plan {
		return printPlan(path, f, w)
	}
	p, err := c.Program(f.name)
	if err != nil {
		return err
	}
	switch {
	case f.asJSON:
		return inspectJSON(c, p, w)
	case f.graph:
		printGraph(p.Graph(), w, "")
	case f.signature:
		fmt.Fprint(w, p.Signature().String())
	case f.ops:
		return listOps(p, w)
	case f.weights:
		return listWeights(p, w)
	default:
		return summarize(c, p, w)
	}
	return nil
}

func printPlan(path string, f *inspectFlags, w io.Writer) error {
	m, err := pt2.Load(path, pt2.WithProgram(f.name), pt2.WithoutPasses(f.without...))
	if err != nil {
		return err
	}
	defer m.Close()
	in, err := inputsOf(f.inputs, m)
	if err != nil {
		return err
	}
	p, err := m.Plan(in...)
	if err != nil {
		return err
	}
	if p == nil {
		_, err = fmt.Fprintln(w, "no plan: sizes or control flow depend on data, or random numbers are drawn; the program runs node by node")
		return err
	}
	_, err = io.WriteString(w, p.String())
	return err
}

// inputsOf reads the inputs from a file; without one they are the archive's example inputs.
func inputsOf(file string, m *pt2.Model) ([]any, error) {
	if file != "" {
		return loadInputs(file, m)
	}
	return interp.ExampleLeaves(m.Program())
}

func listFiles(c *loader.Contents, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, r := range c.Archive().Records() {
		how := "stored"
		if !r.Stored() {
			how = "deflated"
		}
		fmt.Fprintf(tw, "%d\t%d\t%s\t %s\n", r.Offset, r.Size, how, r.Name)
	}
	return tw.Flush()
}

func shape(m *export.TensorMeta) string {
	if m == nil {
		return ""
	}
	parts := make([]string, len(m.Sizes))
	for i, s := range m.Sizes {
		parts[i] = s.String()
	}
	return fmt.Sprintf("%v[%s]", m.DType, strings.Join(parts, ", "))
}

func valueText(v *export.Value) string {
	switch v.Kind {
	case export.TensorKind:
		return "%" + v.Name + ": " + shape(v.Tensor)
	case export.SymIntKind, export.SymFloatKind, export.SymBoolKind:
		return fmt.Sprintf("%%%s: Sym(%v)", v.Name, v.Sym)
	}
	return "%" + v.Name
}

func argText(a export.Argument) string {
	switch a := a.(type) {
	case nil:
		return "None"
	case *export.Value:
		return "%" + a.Name
	case []*export.Value:
		parts := make([]string, len(a))
		for i, v := range a {
			parts[i] = "None"
			if v != nil {
				parts[i] = "%" + v.Name
			}
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		parts := make([]string, len(a))
		for i, v := range a {
			parts[i] = argText(v)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *export.Subgraph:
		return "graph " + a.Name
	case *export.Dict:
		parts := make([]string, len(a.Keys))
		for i, k := range a.Keys {
			parts[i] = k + ": " + argText(a.Values[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case string:
		return fmt.Sprintf("%q", a)
	case bool:
		if a {
			return "True"
		}
		return "False"
	}
	return fmt.Sprint(a)
}

func printGraph(g *export.Graph, w io.Writer, indent string) {
	for _, in := range g.Inputs {
		if in.Value == nil {
			fmt.Fprintf(w, "%s%s = constant input %s\n", indent, in.Name, argText(in.Constant))
			continue
		}
		fmt.Fprintf(w, "%s%s = input\n", indent, valueText(in.Value))
	}
	for _, n := range g.Nodes {
		var outs, args []string
		for _, o := range n.Outputs {
			export.EachValue(o, func(v *export.Value) { outs = append(outs, valueText(v)) })
		}
		for _, a := range n.Args {
			t := argText(a.Value)
			if a.Kind == export.Keyword {
				t = a.Name + "=" + t
			}
			args = append(args, t)
		}
		fmt.Fprintf(w, "%s%s = %s(%s)\n", indent, strings.Join(outs, ", "), strings.TrimPrefix(n.Target, "torch.ops."), strings.Join(args, ", "))
		for _, a := range n.Args {
			if s, ok := a.Value.(*export.Subgraph); ok {
				fmt.Fprintf(w, "%s  graph %s:\n", indent, s.Name)
				printGraph(s.Graph, w, indent+"    ")
			}
		}
	}
	var outs []string
	for _, o := range g.Outputs {
		outs = append(outs, argText(o))
	}
	fmt.Fprintf(w, "%sreturn %s\n", indent, strings.Join(outs, ", "))
}

// opUse is one operator of a program.
type opUse struct {
	Target string `json:"target"`
	Count  int    `json:"count"`
	How    string `json:"how"`
}

func countOps(g *export.Graph, counts map[string]int) {
	for _, n := range g.Nodes {
		counts[n.Target]++
		for _, a := range n.Args {
			if s, ok := a.Value.(*export.Subgraph); ok {
				countOps(s.Graph, counts)
			}
		}
	}
}

func opUses(p *export.Program) []opUse {
	counts := map[string]int{}
	countOps(p.Graph(), counts)
	var out []opUse
	for t, n := range counts {
		out = append(out, opUse{strings.TrimPrefix(t, "torch.ops."), n, how(t)})
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Count > out[j].Count || out[i].Count == out[j].Count && out[i].Target < out[j].Target
	})
	return out
}

func how(target string) string {
	if interp.IsHigherOrder(target) {
		return "subgraphs"
	}
	if interp.IsScalarFunc(target) {
		return "number"
	}
	op := aten.Builtin().Lookup(target)
	switch {
	case op == nil:
		return "MISSING"
	case op.IsView():
		return "view"
	case op.CPU != nil:
		return "kernel"
	case op.Decomp != nil:
		return "decomposed"
	}
	return "computed"
}

func listOps(p *export.Program, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "OPERATOR\tNODES\tRUNS AS")
	for _, u := range opUses(p) {
		fmt.Fprintf(tw, "%s\t%d\t%s\n", u.Target, u.Count, u.How)
	}
	return tw.Flush()
}

type weightInfo struct {
	Name  string  `json:"name"`
	Kind  string  `json:"kind"`
	DType string  `json:"dtype"`
	Sizes []int64 `json:"sizes"`
	Bytes int64   `json:"bytes"`
}

func weightList(p *export.Program) []weightInfo {
	var out []weightInfo
	for i := range p.Signature().Inputs {
		s := &p.Signature().Inputs[i]
		switch s.Kind {
		case export.Parameter, export.Buffer, export.ConstantTensor:
			if t, err := p.InputTensor(s); err == nil {
				out = append(out, weightInfo{s.Target, strings.ToLower(s.Kind.String()), t.DType().String(), t.Sizes(), t.Numel() * int64(t.DType().Size())})
			}
		}
	}
	return out
}

func listWeights(p *export.Program, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tKIND\tDTYPE\tSIZES\tBYTES")
	for _, x := range weightList(p) {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%v\t%d\n", x.Name, x.Kind, x.DType, x.Sizes, x.Bytes)
	}
	return tw.Flush()
}

func summarize(c *loader.Contents, p *export.Program, w io.Writer) error {
	total, n := int64(0), 0
	for _, x := range weightList(p) {
		total += x.Bytes
		n++
	}
	v := p.SchemaVersion()
	fmt.Fprintf(w, "programs:  %s\n", strings.Join(c.Names(), ", "))
	fmt.Fprintf(w, "written by PyTorch %s, schema %d.%d, dialect %s\n", orUnknown(p.TorchVersion()), v.Major, v.Minor, p.Dialect())
	fmt.Fprintf(w, "weights:   %d tensors, %.1f MB\n", n, float64(total)/1e6)
	uses := opUses(p)
	missing := 0
	nodes := 0
	for _, u := range uses {
		nodes += u.Count
		if u.How == "MISSING" {
			missing++
		}
	}
	fmt.Fprintf(w, "graph:     %d nodes, %d operators, %d of them missing here\n", nodes, len(uses), missing)
	fmt.Fprintln(w, "inputs:")
	names := interp.InputNames(p)
	j := 0
	for i, s := range p.Signature().Inputs {
		if s.Kind != export.UserInput {
			continue
		}
		gi := p.Graph().Inputs[i]
		text := "constant " + argText(gi.Constant)
		if gi.Value != nil {
			text = strings.TrimPrefix(strings.TrimPrefix(valueText(gi.Value), "%"+gi.Value.Name), ": ")
		}
		fmt.Fprintf(w, "  %s: %s\n", names[j], text)
		j++
	}
	fmt.Fprintln(w, "outputs:")
	for i, s := range p.Signature().Outputs {
		if s.Kind != export.UserOutput {
			fmt.Fprintf(w, "  (%v of %s)\n", s.Kind, s.Target)
			continue
		}
		if v, ok := p.Graph().Outputs[i].(*export.Value); ok {
			fmt.Fprintf(w, "  %s\n", strings.TrimPrefix(valueText(v), "%"))
		} else {
			fmt.Fprintf(w, "  constant %s\n", argText(p.Graph().Outputs[i]))
		}
	}
	for _, r := range p.RangeConstraints() {
		fmt.Fprintf(w, "range:     %s in %v\n", r.Expr, r)
	}
	for _, g := range p.GuardsCode() {
		fmt.Fprintf(w, "guard:     %s\n", g)
	}
	if len(c.AOTInductor) > 0 {
		fmt.Fprintf(w, "AOTInductor: %d files (carried, not run)\n", len(c.AOTInductor))
	}
	if len(c.ExecuTorch) > 0 {
		fmt.Fprintf(w, "ExecuTorch: %d files (carried, not run)\n", len(c.ExecuTorch))
	}
	for name, text := range c.ExtraFiles {
		fmt.Fprintf(w, "extra file: %s (%d bytes)\n", name, len(text))
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "2.4 or older"
	}
	return s
}

func inspectJSON(c *loader.Contents, p *export.Program, w io.Writer) error {
	type port struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var ins, outs []port
	names := interp.InputNames(p)
	for i, s := range p.Signature().Inputs {
		if s.Kind != export.UserInput {
			continue
		}
		gi := p.Graph().Inputs[i]
		text := argText(gi.Constant)
		if gi.Value != nil {
			text = shape(gi.Value.Tensor)
		}
		ins = append(ins, port{names[len(ins)], text})
	}
	for i, s := range p.Signature().Outputs {
		text := argText(p.Graph().Outputs[i])
		if v, ok := p.Graph().Outputs[i].(*export.Value); ok {
			text = shape(v.Tensor)
		}
		outs = append(outs, port{s.String(), text})
	}
	ranges := map[string]string{}
	for _, r := range p.RangeConstraints() {
		ranges[r.Expr] = r.String()
	}
	v := p.SchemaVersion()
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"programs": c.Names(), "torch_version": p.TorchVersion(), "schema_version": fmt.Sprintf("%d.%d", v.Major, v.Minor),
		"dialect": p.Dialect(), "inputs": ins, "outputs": outs, "ranges": ranges, "guards": p.GuardsCode(),
		"weights": weightList(p), "operators": opUses(p), "extra_files": c.ExtraFiles, "records": c.Archive().Names(),
	})
}
