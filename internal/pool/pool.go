// Package pool splits work over a fixed number of workers.
package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is a set of workers. A nil Pool runs everything on the calling goroutine. It is safe for concurrent use: callers
// share the workers, and what no worker takes up runs on the caller. So a call inside a call cannot deadlock: it waits for
// nothing but ranges that a worker has begun.
type Pool struct {
	n    int
	jobs chan *job
	once sync.Once
}

// New makes a pool in which one call uses up to n goroutines, the caller included; n < 1 means GOMAXPROCS.
func New(n int) *Pool {
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &Pool{n: n, jobs: make(chan *job, 4*n)}
	for range n - 1 {
		go p.worker()
	}
	return p
}

var defaultPool = sync.OnceValue(func() *Pool { return New(0) })

// Default is the process-wide pool of GOMAXPROCS workers, made at its first use.
func Default() *Pool { return defaultPool() }

// Size is the number of goroutines that one call may use.
func (p *Pool) Size() int {
	if p == nil {
		return 1
	}
	return p.n
}

// Close ends the workers; calls after it run on the caller alone.
func (p *Pool) Close() {
	if p != nil {
		p.once.Do(func() { close(p.jobs) })
	}
}

// job is one call. Workers join it until the caller closes it.
type job struct {
	next   atomic.Int64 // first element that nobody has taken
	n      int64
	chunk  int64
	f      func(lo, hi int)
	state  atomic.Int64  // workers inside, and closed
	done   chan struct{} // the last worker has left a closed job
	failed atomic.Pointer[any]
}

const closed = 1 << 32

// spins is how often a goroutine looks again before it goes to sleep: some fifty microseconds. Calls come in bursts, and waking a
// sleeping thread takes as long as a small call.
const spins = 10_000

// receive waits for a value, at first without sleeping.
func receive[T any](c chan T) (v T, ok bool) {
	for i := range spins {
		select {
		case v, ok = <-c:
			return v, ok
		default:
		}
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
	v, ok = <-c
	return v, ok
}

func (p *Pool) worker() {
	for {
		j, ok := receive(p.jobs)
		if !ok {
			return
		}
		if j.join() {
			j.run()
			j.leave()
		}
	}
}

func (j *job) join() bool {
	for {
		s := j.state.Load()
		if s&closed != 0 {
			return false
		}
		if j.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

func (j *job) leave() {
	if j.state.Add(-1) == closed {
		j.done <- struct{}{}
	}
}

// close keeps further workers out and waits for those inside.
func (j *job) close() {
	if j.state.Or(closed) != 0 {
		receive(j.done)
	}
}

func (j *job) run() {
	defer func() {
		if r := recover(); r != nil {
			j.failed.CompareAndSwap(nil, &r)
			j.next.Store(j.n)
		}
	}()
	for {
		lo := j.next.Add(j.chunk) - j.chunk
		if lo >= j.n {
			return
		}
		j.f(int(lo), int(min(lo+j.chunk, j.n)))
	}
}

// ParallelFor calls f on ranges that cover [0, n), each of at least grain elements but for the last. It returns when all are
// done. A panic in f is raised again on the caller.
func (p *Pool) ParallelFor(n, grain int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if p == nil || p.n == 1 || n <= grain {
		f(0, n)
		return
	}
	// Small ranges even out what cores differ in speed; very small ones would cost more than they bring.
	chunk := max(grain, n/(16*p.n))
	j := &job{n: int64(n), chunk: int64(chunk), f: f, done: make(chan struct{}, 1)}
	for range min(p.n-1, (n-1)/chunk) {
		if !p.offer(j) {
			break
		}
	}
	j.run()
	j.close()
	if r := j.failed.Load(); r != nil {
		panic(*r)
	}
}

// offer puts j in the queue, if there is room.
func (p *Pool) offer(j *job) (ok bool) {
	defer func() {
		if recover() != nil { // the pool was closed
			ok = false
		}
	}()
	select {
	case p.jobs <- j:
		return true
	default:
		return false
	}
}
