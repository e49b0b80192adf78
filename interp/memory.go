package interp

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/plan"
	"github.com/pt2go/pt2/tensor"
)

// maxIdle bounds the frames that a module and its instances keep for later runs.
const maxIdle = 64

// defaultIdle is how long a frame is kept that no run wants.
const defaultIdle = time.Minute

// Memory is what a module and its instances have allocated, in bytes. Weights and what plans made of them are not counted, nor is
// what the caller holds: inputs and outputs.
type Memory struct {
	State   int64 // buffers that runs change
	Running int64 // arenas and outputs of planned runs under way, tensors of others
	Idle    int64 // arenas of frames that wait for the next run
	Limit   int64 // of all together, 0 for none
}

// budget counts what a module and its instances allocate, and keeps the frames that wait for the next run.
type budget struct {
	limit, timeout int64 // 0: none, default; timeout in nanoseconds, negative for never

	mu      sync.Mutex
	state   int64
	running int64
	idle    []idleFrame // the one that was used last is at the end
	waiting int64       // bytes of idle
	timer   *time.Timer // ends the wait of the oldest
}

type idleFrame struct {
	frame *plan.Frame
	of    *planned
	state *state
	since time.Time
}

func newBudget(opts *Options) *budget {
	b := &budget{limit: opts.MemoryLimit, timeout: int64(opts.IdleTimeout)}
	if b.timeout == 0 {
		b.timeout = int64(defaultIdle)
	}
	return b
}

// reserve takes n bytes for a run before they are allocated. Frames that wait make room; if that is not enough, it is an
// *[aten.LimitError].
func (b *budget) reserve(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(n); err != nil {
		return err
	}
	b.running += n
	return nil
}

func (b *budget) room(n int64) error {
	limit := b.limit
	if limit <= 0 { // more than the machine has would end the process
		if limit = tensor.MachineMemory(); limit <= 0 {
			return nil
		}
	}
	for b.state+b.running+b.waiting+n > limit {
		if len(b.idle) == 0 {
			return &aten.LimitError{Need: n, Used: b.state + b.running, Limit: limit}
		}
		b.forget(0)
	}
	return nil
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	b.running -= n
	b.mu.Unlock()
}

// hold takes n bytes for the buffers of an instance until holder is collected.
func (b *budget) hold(n int64, holder *stateMemory) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(n); err != nil {
		return err
	}
	b.state += n
	holder.of = b
	runtime.AddCleanup(holder, func(n int64) {
		b.mu.Lock()
		b.state -= n
		b.mu.Unlock()
	}, n)
	return nil
}

// stateMemory stands for the memory of an instance's buffers. (Cleanups want more than the tiniest objects, hence the pointer.)
type stateMemory struct{ of *budget }

// forget drops a frame that waits.
func (b *budget) forget(i int) {
	b.waiting -= b.idle[i].frame.Bytes()
	b.idle = slices.Delete(b.idle, i, i+1)
}

// take finds a frame of a plan for a state that waits; its bytes count as running.
func (b *budget) take(p *planned, st *state) *plan.Frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.idle) - 1; i >= 0; i-- {
		if f := b.idle[i]; f.of == p && f.state == st {
			b.forget(i)
			b.running += f.frame.Bytes()
			return f.frame
		}
	}
	return nil
}

// keep lets a frame wait for the next run.
func (b *budget) keep(f *plan.Frame, p *planned, st *state) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running -= f.Bytes()
	if p.dropped.Load() {
		return
	}
	if len(b.idle) >= maxIdle {
		b.forget(0)
	}
	b.idle = append(b.idle, idleFrame{f, p, st, time.Now()})
	b.waiting += f.Bytes()
	if b.timer == nil && b.timeout > 0 {
		b.timer = time.AfterFunc(time.Duration(b.timeout), b.expire)
	}
}

// expire drops the frames that waited for long.
func (b *budget) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = nil
	end := time.Now().Add(-time.Duration(b.timeout))
	for len(b.idle) > 0 && !b.idle[0].since.After(end) {
		b.forget(0)
	}
	if len(b.idle) > 0 {
		b.timer = time.AfterFunc(b.idle[0].since.Sub(end), b.expire)
	}
}

// drop forgets the frames that wait and fit; nil fits all.
func (b *budget) drop(fits func(f *idleFrame) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.idle) - 1; i >= 0; i-- {
		if fits == nil || fits(&b.idle[i]) {
			b.forget(i)
		}
	}
	if len(b.idle) == 0 && b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// Memory tells what the module and its instances have allocated.
func (m *Module) Memory() Memory {
	b := m.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return Memory{State: b.state, Running: b.running, Idle: b.waiting, Limit: b.limit}
}

// Trim gives the memory of runs that are over to the garbage collector, for instance after a peak. It is safe at any time; the next
// run allocates anew.
func (m *Module) Trim() { m.budget.drop(nil) }

// meter counts the tensors of one run that goes node by node, where there is a limit. A nil meter counts nothing.
type meter struct {
	b       *budget
	refs    map[*tensor.Storage]int // of values in frames; only what the run itself allocated
	own     map[*tensor.Storage]bool
	bytes   int64 // reserved for them
	pending int64 // reserved by the step under way
}

// newMeter leaves out what the run was given.
func newMeter(b *budget, given []any) *meter {
	if b.limit <= 0 {
		return nil
	}
	m := &meter{b: b, refs: map[*tensor.Storage]int{}, own: map[*tensor.Storage]bool{}}
	for _, x := range given {
		if st := storageOf(x); st != nil {
			m.own[st] = false
		}
	}
	return m
}

func storageOf(x any) *tensor.Storage {
	if v, ok := x.(*aten.Value); ok && v != nil && v.T != nil {
		return v.T.Storage()
	}
	return nil
}

// reserve is what aten.Eager asks before it allocates.
func (m *meter) reserve(n int64) error {
	if err := m.b.reserve(n); err != nil {
		return err
	}
	m.pending += n
	return nil
}

// add counts a value that is put into a frame.
func (m *meter) add(x any) {
	st := storageOf(x)
	if m == nil || st == nil {
		return
	}
	if given, known := m.own[st]; known && !given {
		return
	}
	m.own[st] = true
	if m.refs[st]++; m.refs[st] == 1 {
		m.bytes += int64(len(st.Bytes()))
		m.pending -= int64(len(st.Bytes()))
	}
}

// remove counts a value that leaves a frame.
func (m *meter) remove(x any) {
	st := storageOf(x)
	if m == nil || st == nil || m.refs[st] == 0 {
		return
	}
	if m.refs[st]--; m.refs[st] == 0 {
		delete(m.refs, st)
		delete(m.own, st)
		m.bytes -= int64(len(st.Bytes()))
		m.b.release(int64(len(st.Bytes())))
	}
}

// settle ends a step: what it allocated beyond the values it left is garbage; values that it left beyond what it reserved are
// counted now.
func (m *meter) settle() error {
	if m == nil {
		return nil
	}
	n := m.pending
	m.pending = 0
	if n >= 0 {
		m.b.release(n)
		return nil
	}
	return m.b.reserve(-n)
}

// end gives everything back; outputs belong to the caller.
func (m *meter) end() {
	if m != nil {
		m.b.release(m.bytes + m.pending)
		m.bytes, m.pending = 0, 0
	}
}
