package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/tensor"
)

func newBenchCommand() *cobra.Command {
	var threads int
	var stdio, eager bool
	var inputs, name string
	var seconds float64
	c := &cobra.Command{
		Use:   "bench MODEL",
		Short: "Measure latency, throughput, load time and memory",
		Example: `  pt2 bench model.pt2 --threads 2
  pt2 bench model.pt2 --threads 1 --stdio     line protocol for a driver that interleaves engines`,
		Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b := &bench{model: args[0], threads: threads, inputs: inputs, name: name, eager: eager, out: c.OutOrStdout()}
			if stdio {
				return b.serve(os.Stdin)
			}
			return b.report(time.Duration(seconds * float64(time.Second)))
		},
	}
	fl := c.Flags()
	fl.IntVar(&threads, "threads", runtime.GOMAXPROCS(0), "goroutines that one call may use")
	fl.BoolVar(&stdio, "stdio", false, "speak the line protocol: a ready line, then N in and times out")
	fl.BoolVar(&eager, "eager", false, "run node by node instead of by a plan")
	fl.StringVar(&inputs, "inputs", "", "file with the inputs; default: the archive's example inputs")
	fl.StringVar(&name, "name", "", "program of the archive, if it has several")
	fl.Float64Var(&seconds, "seconds", 3, "how long to measure")
	return c
}

type bench struct {
	model, inputs, name string
	threads             int
	eager               bool
	out                 io.Writer

	m      *pt2.Model
	in     []any
	first  []any
	loadS  float64
	baseMB float64
}

func (b *bench) load() error {
	b.baseMB = peakMB()
	start := time.Now()
	opts := []pt2.Option{pt2.WithThreads(max(b.threads, 1)), pt2.WithProgram(b.name)}
	if b.eager {
		opts = append(opts, pt2.WithEager())
	}
	m, err := pt2.Load(b.model, opts...)
	if err != nil {
		return err
	}
	b.m = m
	if b.in, err = inputsOf(b.inputs, m); err != nil {
		return err
	}
	if b.first, err = m.Run(context.Background(), b.in...); err != nil {
		return err
	}
	b.loadS = time.Since(start).Seconds()
	return nil
}

func (b *bench) calls(n int) ([]float64, error) {
	times := make([]float64, n)
	for i := range times {
		t := time.Now()
		if _, err := b.m.Run(context.Background(), b.in...); err != nil {
			return nil, err
		}
		times[i] = time.Since(t).Seconds()
	}
	return times, nil
}

// serve speaks the line protocol.
func (b *bench) serve(in io.Reader) error {
	enc := json.NewEncoder(b.out)
	if err := b.load(); err != nil {
		enc.Encode(map[string]any{"ready": false, "error": err.Error()})
		return err
	}
	defer b.m.Close()
	ready := map[string]any{"ready": true, "load_s": b.loadS, "rss_mb": peakMB(), "base_mb": b.baseMB}
	if c := check(b.first); c != nil {
		ready["check"] = c
	}
	enc.Encode(ready)
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		n, err := strconv.Atoi(strings.TrimSpace(sc.Text()))
		if err != nil || n < 0 {
			return usageError{fmt.Errorf("line %q is no number of calls", sc.Text())}
		}
		times, err := b.calls(n)
		if err != nil {
			return err
		}
		enc.Encode(map[string]any{"times_s": times})
	}
	return sc.Err()
}

// check is the mean and standard deviation of the first float output.
func check(out []any) []float64 {
	for _, x := range out {
		t, ok := x.(*tensor.Tensor)
		if !ok || t == nil || !t.DType().IsFloat() {
			continue
		}
		v, err := t.Floats()
		if err != nil || len(v) == 0 {
			continue
		}
		return meanStd(v)
	}
	return nil
}

func (b *bench) report(d time.Duration) error {
	if err := b.load(); err != nil {
		return err
	}
	defer b.m.Close()
	var times []float64
	for end := time.Now().Add(d); time.Now().Before(end) || len(times) < 3; {
		t, err := b.calls(1)
		if err != nil {
			return err
		}
		times = append(times, t...)
	}
	sort.Float64s(times)
	sum := 0.0
	for _, t := range times {
		sum += t
	}
	at := func(q float64) time.Duration {
		return time.Duration(times[int(q*float64(len(times)-1))] * float64(time.Second))
	}
	fmt.Fprintf(b.out, "threads     %d\ncalls       %d\n", b.threads, len(times))
	fmt.Fprintf(b.out, "latency     min %v, p50 %v, p90 %v, p99 %v, max %v\n", at(0), at(.5), at(.9), at(.99), at(1))
	fmt.Fprintf(b.out, "throughput  %.1f calls/s\n", float64(len(times))/sum)
	fmt.Fprintf(b.out, "load        %.1f ms to the first answer\n", b.loadS*1e3)
	fmt.Fprintf(b.out, "peak memory %.1f MB (%.1f MB before loading)\n", peakMB(), b.baseMB)
	return nil
}
