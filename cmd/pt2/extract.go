package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2/archive"
)

func newExtractCommand() *cobra.Command {
	var prefix string
	c := &cobra.Command{
		Use:   "extract MODEL FOLDER",
		Short: "Unpack an archive's records into a folder",
		Example: `  pt2 extract model.pt2 out/
  pt2 extract model.pt2 out/ --prefix extra/`,
		Args: exactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := archive.Open(args[0], archive.Options{})
			if err != nil {
				return err
			}
			defer r.Close()
			n, err := r.ExtractTo(args[1], func(name string) bool { return strings.HasPrefix(name, prefix) })
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%d files\n", n)
			return nil
		},
	}
	c.Flags().StringVar(&prefix, "prefix", "", "only records whose names begin so")
	return c
}
