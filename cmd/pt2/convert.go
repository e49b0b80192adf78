package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/loader"
	"github.com/pt2go/pt2/tensor"
)

// convertFlags are what convert changes on the way; by default nothing.
type convertFlags struct {
	batch      string
	noExamples bool
	noMetadata bool
	decompose  bool
	dtype      string
	device     string
}

func newConvertCommand() *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Load an archive and save it in today's form",
		Long: `Load an archive of any PyTorch version and save it as today's PyTorch does. Nothing is run and nothing is lost: all programs,
weights, constants, example inputs, extra files and records of other names are kept, and equal input gives equal bytes.`,
		Example: `  pt2 convert old.pt2 new.pt2                      bring an old archive up to date
  pt2 convert in.pt2 out.pt2 --strip-example-inputs --strip-metadata
  pt2 convert in.pt2 core.pt2 --decompose          Core ATen, functional
  pt2 convert in.pt2 half.pt2 --dtype bf16 --device cuda:0
  pt2 convert --batch list.tsv                     IN<TAB>OUT a line`,
		Args: func(c *cobra.Command, args []string) error {
			if f.batch != "" {
				return exactArgs(0)(c, args)
			}
			return exactArgs(2)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if f.batch != "" {
				return f.convertAll(c.ErrOrStderr())
			}
			return f.convert(args[0], args[1])
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.batch, "batch", "", "list of archives to convert in one process")
	fl.BoolVar(&f.noExamples, "strip-example-inputs", false, "leave out the example inputs")
	fl.BoolVar(&f.noMetadata, "strip-metadata", false, "leave out what is recorded of each node: stack traces, module stacks")
	fl.BoolVar(&f.decompose, "decompose", false, "take operators apart into Core ATen, as run_decompositions does")
	fl.StringVar(&f.dtype, "dtype", "", "keep weights as f16, bf16 or f32; the program casts them back and computes as before")
	fl.StringVar(&f.device, "device", "", "move everything to a device, such as cpu or cuda:0")
	return c
}

// weightDTypes are the values of --dtype.
var weightDTypes = map[string]tensor.DType{"f16": tensor.Float16, "bf16": tensor.BFloat16, "f32": tensor.Float32}

// convertAll goes through a list; a file that fails never ends the rest.
func (f *convertFlags) convertAll(errw io.Writer) error {
	file, err := os.Open(f.batch)
	if err != nil {
		return err
	}
	defer file.Close()
	failed := 0
	sc := bufio.NewScanner(file)
	for sc.Scan() {
		in, out, ok := strings.Cut(sc.Text(), "\t")
		if !ok {
			return usageError{fmt.Errorf("%s: %q: want IN<TAB>OUT", f.batch, sc.Text())}
		}
		if err := f.convert(in, out); err != nil {
			failed++
			fmt.Fprintf(errw, "%s: %v\n", in, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d archives could not be converted", failed)
	}
	return sc.Err()
}

func (f *convertFlags) convert(in, out string) error {
	c, err := loader.Open(in, loader.Options{AllowAnyDialect: true})
	if err != nil {
		return err
	}
	defer c.Close()
	pkg, err := c.Package()
	if err != nil {
		return err
	}
	for name, p := range pkg.Programs {
		if pkg.Programs[name], err = f.apply(p); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
	}
	return loader.PackagePT2File(out, pkg, loader.SaveOptions{})
}

// apply makes the changes that the flags ask for.
func (f *convertFlags) apply(p *export.Program) (_ *export.Program, err error) {
	if f.decompose {
		if p, err = passes.RunDecompositions(p, nil, nil); err != nil {
			return nil, err
		}
	}
	if f.dtype != "" {
		dt, ok := weightDTypes[f.dtype]
		if !ok {
			return nil, usageError{fmt.Errorf("--dtype %s: want f16, bf16 or f32", f.dtype)}
		}
		if p, err = passes.StoreWeightsAs(p, dt); err != nil {
			return nil, err
		}
	}
	if f.device != "" {
		if p, err = passes.MoveToDevice(p, passes.ToDevice(f.device)); err != nil {
			return nil, err
		}
	}
	if f.noExamples {
		p = p.WithoutExampleInputs()
	}
	if f.noMetadata {
		p = p.WithoutMetadata()
	}
	return p, nil
}
