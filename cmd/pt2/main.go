// Command pt2 runs, inspects and verifies PyTorch PT2 archives.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/guards"
	"github.com/pt2go/pt2/interp"
)

// Exit codes.
const (
	exitFailure     = 1 // anything else went wrong
	exitUsage       = 2 // wrong flags or arguments
	exitNotPT2      = 3 // the file is no PT2 archive, or damaged
	exitUnsupported = 4 // the program needs operators that are missing
	exitInput       = 5 // the inputs do not fit the program
	exitMismatch    = 6 // verify found differences
)

// errMismatch ends verify when results differ.
var errMismatch = errors.New("results differ")

// usageError is a wrong call of the command.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with a result, for tests.
func run(args []string, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	if err == nil {
		return 0
	}
	if !errors.Is(err, errMismatch) {
		fmt.Fprintln(errOut, "pt2:", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage usageError
	var missing *interp.MissingError
	var input *guards.InputError
	var guard *guards.Error
	var format *archive.FormatError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errMismatch):
		return exitMismatch
	case errors.As(err, &missing):
		return exitUnsupported
	case errors.As(err, &input), errors.As(err, &guard):
		return exitInput
	case errors.Is(err, archive.ErrNotPT2), errors.As(err, &format):
		return exitNotPT2
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pt2",
		Short: "Run, inspect and verify PyTorch PT2 archives",
		Long: `pt2 runs what torch.export.save and package_pt2 write, without Python.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 not a PT2 archive or damaged,
4 operators are missing, 5 inputs do not fit the program, 6 results differ.`,
		Example: `  pt2 run model.pt2                              run on the example inputs in the archive
  pt2 run model.pt2 --inputs x.npy --output y.npy
  pt2 inspect model.pt2                          inputs, outputs, weights, operators
  pt2 verify model.pt2 expected.pt               compare with results of PyTorch
  pt2 bench model.pt2 --threads 2`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError{fmt.Errorf("there is no command %q; see pt2 --help", args[0])}
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRunCommand(), newInspectCommand(), newVerifyCommand(), newBenchCommand(), newExtractCommand(), newConvertCommand())
	return root
}

// exactArgs is cobra.ExactArgs with the usage exit code.
func exactArgs(n int) cobra.PositionalArgs { return rangeArgs(n, n) }

// rangeArgs is cobra.RangeArgs with the usage exit code.
func rangeArgs(low, high int) cobra.PositionalArgs {
	want := fmt.Sprint(low)
	if high > low {
		want = fmt.Sprintf("%d or %d", low, high)
	}
	return func(c *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return usageError{fmt.Errorf("%s takes %s arguments, got %d; see %s --help", c.CommandPath(), want, len(args), c.CommandPath())}
		}
		return nil
	}
}
