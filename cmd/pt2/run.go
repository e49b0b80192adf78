package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/plan"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tensor/tensorio"
)

type runFlags struct {
	name, inputs, output, calls, batch string
	threads                            int
	eager                              bool
	seed                               uint64
	without                            []string
	profile, detail                    bool
	trace                              string
	prof                               *plan.Profile
}

func (f *runFlags) options(name string) []pt2.Option {
	if f.name != "" {
		name = f.name
	}
	opts := []pt2.Option{pt2.WithProgram(name), pt2.WithSeed(f.seed), pt2.WithoutPasses(f.without...)}
	if f.profile || f.detail || f.trace != "" {
		f.prof = &plan.Profile{}
		opts = append(opts, pt2.WithProfile(f.prof))
	}
	if f.threads > 0 {
		opts = append(opts, pt2.WithThreads(f.threads))
	}
	if f.eager {
		opts = append(opts, pt2.WithEager())
	}
	return opts
}

func newRunCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run MODEL",
		Short: "Run a program on its example inputs or on yours",
		Long: `Run a program on the example inputs that the archive holds, or on inputs from a file:
.pt (a list of leaves, or a tuple of args and kwargs), .npy, .npz, .safetensors or .json.
Outputs are printed, or written to the file that --output names.`,
		Example: `  pt2 run model.pt2
  pt2 run model.pt2 --inputs x.pt --output y.pt
  pt2 run model.pt2 --calls expected.pt --output out.pt    many calls on one module
  pt2 run model.pt2 --profile --trace trace.json           where the time goes; the trace is for Perfetto
  pt2 run --batch list.tsv                                 MODEL<TAB>CALLS<TAB>OUTPUT[<TAB>PROGRAM] a line`,
		Args: func(c *cobra.Command, args []string) error {
			if f.batch != "" {
				return exactArgs(0)(c, args)
			}
			return exactArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			switch {
			case f.batch != "":
				return runBatch(ctx, &f, c.ErrOrStderr())
			case f.calls != "":
				if f.output == "" {
					return usageError{fmt.Errorf("--calls needs --output")}
				}
				return runCalls(ctx, &f, args[0], f.calls, f.output, "")
			}
			return runOnce(ctx, &f, args[0], c.OutOrStdout())
		},
	}
	c.SetContext(context.Background())
	fl := c.Flags()
	fl.StringVar(&f.name, "name", "", "program of the archive, if it has several")
	fl.StringVar(&f.inputs, "inputs", "", "file with the inputs (.pt, .npy, .npz, .safetensors, .json)")
	fl.StringVar(&f.output, "output", "", "file for the outputs (.pt, .npy, .npz, .safetensors, .json)")
	fl.StringVar(&f.calls, "calls", "", "torch.save file of calls to make in order on one module")
	fl.StringVar(&f.batch, "batch", "", "list of models and calls to run in one process")
	fl.IntVar(&f.threads, "threads", 0, "goroutines that one call may use (0: all cores)")
	fl.BoolVar(&f.eager, "eager", false, "run node by node instead of by a plan")
	fl.StringSliceVar(&f.without, "without-pass", nil, "passes of the planner to leave out")
	fl.BoolVar(&f.profile, "profile", false, "print a table of the time by operator over ten calls, instead of the outputs")
	fl.BoolVar(&f.detail, "profile-detail", false, "the same, with fused operators told apart by what they compute")
	fl.StringVar(&f.trace, "trace", "", "file for a Chrome trace of ten calls")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of the random number generator, as torch.manual_seed")
	return c
}

func runOnce(ctx context.Context, f *runFlags, model string, w io.Writer) error {
	m, err := pt2.Load(model, f.options("")...)
	if err != nil {
		return err
	}
	defer m.Close()
	in, err := inputsOf(f.inputs, m)
	if err != nil {
		return err
	}
	if f.prof != nil {
		return f.profiled(ctx, m, in, w)
	}
	out, err := m.Run(ctx, in...)
	if err != nil {
		return err
	}
	if f.output != "" {
		return saveOutputs(f.output, m, out)
	}
	sig := m.Signature()
	for i, x := range out {
		name := fmt.Sprintf("output %d", i)
		if i < len(sig.Outputs) {
			name = sig.Outputs[i].Name
		}
		text, sep := format(x), " "
		if strings.Contains(text, "\n") {
			sep = "\n" // so that the columns stand below each other
		}
		fmt.Fprintf(w, "%s =%s%s\n", name, sep, text)
	}
	return nil
}

// profiled calls the model ten times after a first call, and writes the table and the trace.
func (f *runFlags) profiled(ctx context.Context, m *pt2.Model, in []any, w io.Writer) error {
	for i := range 11 {
		if i == 1 {
			f.prof.Reset()
		}
		if _, err := m.Run(ctx, in...); err != nil {
			return err
		}
	}
	if f.trace != "" {
		file, err := os.Create(f.trace)
		if err != nil {
			return err
		}
		if err := errors.Join(f.prof.WriteTrace(file), file.Close()); err != nil {
			return err
		}
	}
	if f.profile || f.detail {
		return f.prof.Table(w, f.detail)
	}
	return nil
}

func format(x any) string {
	if t, ok := x.(*tensor.Tensor); ok && t != nil {
		return t.String()
	}
	if x == nil {
		return "None"
	}
	return fmt.Sprint(x)
}

// loadInputs reads the leaves of a call from a file.
func loadInputs(path string, m *pt2.Model) ([]any, error) {
	v, err := tensorio.Load(path)
	if err != nil {
		return nil, err
	}
	if d, ok := v.(*tensorio.Dict); ok && filepath.Ext(path) != ".pt" {
		return byName(d, m)
	}
	return flatten(nil, v), nil
}

// byName orders named inputs as the program takes them; a file whose names are others is taken in its own order.
func byName(d *tensorio.Dict, m *pt2.Model) ([]any, error) {
	var out []any
	for _, p := range m.Signature().Inputs {
		v, ok := d.Get(p.Name)
		if !ok {
			return d.Values, nil
		}
		out = append(out, v)
	}
	return out, nil
}

func flatten(out []any, v any) []any {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = flatten(out, x)
		}
	case tensorio.Tuple:
		for _, x := range v {
			out = flatten(out, x)
		}
	case *tensorio.Dict:
		for _, x := range v.Values {
			out = flatten(out, x)
		}
	default:
		out = append(out, v)
	}
	return out
}

func saveOutputs(path string, m *pt2.Model, out []any) error {
	if ext := filepath.Ext(path); ext == ".npz" || ext == ".safetensors" {
		d := &tensorio.Dict{}
		sig := m.Signature()
		for i, x := range out {
			name := fmt.Sprintf("output_%d", i)
			if i < len(sig.Outputs) {
				name = sig.Outputs[i].Name
			}
			d.Keys = append(d.Keys, name)
			d.Values = append(d.Values, x)
		}
		return tensorio.Save(path, d)
	}
	if len(out) == 1 && filepath.Ext(path) == ".npy" {
		return tensorio.Save(path, out[0])
	}
	return tensorio.Save(path, out)
}

// runCalls makes the calls of a file in order on one module and writes what each gives.
func runCalls(ctx context.Context, f *runFlags, model, calls, output, program string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	list, err := conformance.ReadCalls(calls)
	if err != nil {
		return err
	}
	results := make([]any, len(list))
	m, loadErr := pt2.Load(model, f.options(program)...)
	if loadErr == nil {
		defer m.Close()
	}
	for i := range list {
		var out []any
		err := loadErr
		if err == nil {
			out, err = m.Run(ctx, conformance.CloneInputs(list[i].Inputs)...)
		}
		if err != nil {
			results[i] = &tensorio.Dict{Keys: []any{"error"}, Values: []any{err.Error()}}
			continue
		}
		results[i] = &tensorio.Dict{Keys: []any{"outputs"}, Values: []any{out}}
	}
	if err := tensorio.SavePT(output, results); err != nil {
		return err
	}
	return loadErr
}

// runBatch runs many cases in one process; a case that fails never ends the rest.
func runBatch(ctx context.Context, f *runFlags, errw io.Writer) error {
	file, err := os.Open(f.batch)
	if err != nil {
		return err
	}
	defer file.Close()
	failed, n := 0, 0
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		cols := strings.Split(sc.Text(), "\t")
		if len(cols) < 3 {
			return usageError{fmt.Errorf("%s: line %d: want MODEL<TAB>CALLS<TAB>OUTPUT", f.batch, n+1)}
		}
		n++
		program := ""
		if len(cols) > 3 {
			program = cols[3]
		}
		if err := runCalls(ctx, f, cols[0], cols[1], cols[2], program); err != nil {
			failed++
			fmt.Fprintf(errw, "%s: %v\n", cols[0], err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	fmt.Fprintf(errw, "%d cases, %d could not be loaded or written\n", n, failed)
	return sc.Err()
}
