package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
)

func newVerifyCommand() *cobra.Command {
	var rtol, atol float64
	var meta, eager bool
	var without []string
	var name string
	c := &cobra.Command{
		Use:   "verify MODEL EXPECTED.pt | verify CORPUS.tar.zst",
		Short: "Compare results with those that PyTorch recorded",
		Long: `Run recorded calls and compare the outputs with PyTorch's: one model with its expected.pt
(a torch.save list of {"inputs": leaves, "outputs": leaves}), or a whole corpus, packed or not.
With --meta each value of the graph is also held against the dtype, sizes and strides
that the archive records. The last line is "N passed, N failed".`,
		Example: `  pt2 verify model.pt2 expected.pt
  pt2 verify corpus.tar.zst --meta`,
		Args: rangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			opts := interp.Options{CheckMeta: meta, Eager: eager, WithoutPasses: without}
			if len(args) == 1 {
				return verifyCorpus(args[0], opts, c.OutOrStdout())
			}
			return verifyOne(args[0], args[1], name, conformance.Tolerance{RTol: rtol, ATol: atol}, opts, c.OutOrStdout())
		},
	}
	fl := c.Flags()
	fl.Float64Var(&rtol, "rtol", 1e-4, "relative tolerance")
	fl.Float64Var(&atol, "atol", 1e-5, "absolute tolerance")
	fl.BoolVar(&meta, "meta", false, "check every value against the archive's metadata (node by node)")
	fl.BoolVar(&eager, "eager", false, "run node by node instead of by a plan")
	fl.StringSliceVar(&without, "without-pass", nil, "passes of the planner to leave out")
	fl.StringVar(&name, "name", "", "program of the archive, if it has several")
	return c
}

func verifyOne(model, expected, name string, tol conformance.Tolerance, o interp.Options, w io.Writer) error {
	calls, err := conformance.ReadCalls(expected)
	if err != nil {
		return err
	}
	opts := []pt2.Option{pt2.WithProgram(name), pt2.WithoutPasses(o.WithoutPasses...)}
	if o.Eager {
		opts = append(opts, pt2.WithEager())
	}
	m, err := pt2.Load(model, opts...)
	if err != nil {
		return err
	}
	defer m.Close()
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	failed := 0
	for i := range calls {
		out, err := m.Run(context.Background(), conformance.CloneInputs(calls[i].Inputs)...)
		switch {
		case calls[i].Failed && err == nil:
			err = fmt.Errorf("no error, PyTorch says %q", calls[i].Error)
		case calls[i].Failed:
			err = nil
		case err == nil:
			err = conformance.Compare(out, calls[i].Outputs, tol)
		}
		if err != nil {
			failed++
			fmt.Fprintf(tw, "call %d\t%v\n", i, err)
		}
	}
	tw.Flush()
	return summary(w, len(calls)-failed, failed)
}

func summary(w io.Writer, passed, failed int) error {
	fmt.Fprintf(w, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return errMismatch
	}
	return nil
}

func verifyCorpus(path string, opts interp.Options, w io.Writer) error {
	dir, err := os.MkdirTemp("", "pt2-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sub := path
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		if strings.HasSuffix(path, ".pt2") {
			return usageError{fmt.Errorf("verify %s: an archive needs the file with its recorded calls, too; see pt2 verify --help", path)}
		}
		if sub, err = conformance.Unpack(path, dir); err != nil {
			return err
		}
	}
	cases, err := conformance.ReadManifest(sub)
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	failed := 0
	for i := range cases {
		if err := conformance.Run(&cases[i], loader.Options{}, opts); err != nil {
			failed++
			fmt.Fprintf(tw, "%s\t%v\n", cases[i].ID, err)
		}
	}
	tw.Flush()
	return summary(w, len(cases)-failed, failed)
}
