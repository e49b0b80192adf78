package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Profile collects how long instructions take. It is safe for concurrent use.
type Profile struct {
	mu     sync.Mutex
	start  time.Time
	runs   int
	events []event
}

// event is one execution of an instruction.
type event struct {
	in   *Instr
	at   time.Duration // since the profile's start
	took time.Duration
	run  int
}

// begin counts a run.
func (p *Profile) begin() (run int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.start.IsZero() {
		p.start = time.Now()
	}
	p.runs++
	return p.runs
}

func (p *Profile) add(in *Instr, run int, from time.Time) {
	took := time.Since(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event{in, from.Sub(p.start), took, run})
}

// Reset forgets what was collected.
func (p *Profile) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs, p.events, p.start = 0, nil, time.Time{}
}

// kind is what an instruction is counted as: its operator, and what a fused operator says of itself.
func (in *Instr) kind(detail bool) string {
	name := strings.TrimSuffix(in.Op.Name(), ".default")
	if !detail || !strings.HasPrefix(name, "plan.") {
		return name
	}
	if s, ok := in.Args.V[len(in.Args.V)-1].(fmt.Stringer); ok {
		return name + " " + s.String()
	}
	return name
}

// Table writes the time by operator, the largest first; with detail fused operators are told apart by what they compute.
func (p *Profile) Table(w io.Writer, detail bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	type row struct {
		name  string
		calls int
		took  time.Duration
	}
	rows := map[string]*row{}
	total := time.Duration(0)
	for _, e := range p.events {
		k := e.in.kind(detail)
		r := rows[k]
		if r == nil {
			r = &row{name: k}
			rows[k] = r
		}
		r.calls++
		r.took += e.took
		total += e.took
	}
	var list []*row
	for _, r := range rows {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *row) int {
		if a.took != b.took {
			return int(b.took - a.took)
		}
		return strings.Compare(a.name, b.name)
	})
	runs := max(p.runs, 1)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "TIME/RUN\tSHARE\tCALLS/RUN\tOPERATOR\t\n")
	for _, r := range list {
		fmt.Fprintf(tw, "%v\t%.1f%%\t%d\t%s\t\n", (r.took / time.Duration(runs)).Round(time.Microsecond/10),
			100*float64(r.took)/float64(max(total, 1)), r.calls/runs, r.name)
	}
	fmt.Fprintf(tw, "%v\t\t%d\tall, %d runs\t\n", (total / time.Duration(runs)).Round(time.Microsecond/10), len(p.events)/runs, p.runs)
	return tw.Flush()
}

// WriteTrace writes the executions in Chrome's trace format, which chrome://tracing and Perfetto read.
func (p *Profile) WriteTrace(w io.Writer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	type traceEvent struct {
		Name string         `json:"name"`
		Cat  string         `json:"cat"`
		Ph   string         `json:"ph"`
		Ts   float64        `json:"ts"`
		Dur  float64        `json:"dur"`
		Pid  int            `json:"pid"`
		Tid  int            `json:"tid"`
		Args map[string]any `json:"args"`
	}
	events := make([]traceEvent, 0, len(p.events))
	for _, e := range p.events {
		events = append(events, traceEvent{Name: e.in.kind(false), Cat: "instruction", Ph: "X", Ts: float64(e.at.Nanoseconds()) / 1e3,
			Dur: float64(e.took.Nanoseconds()) / 1e3, Pid: 1, Tid: 1, Args: map[string]any{"call": e.in.String(), "run": e.run}})
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}
