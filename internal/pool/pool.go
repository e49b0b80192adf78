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
	n       int
	workers []*worker
	closed  atomic.Bool
}

// New makes a pool in which one call uses up to n goroutines, the caller included; n < 1 means GOMAXPROCS.
func New(n int) *Pool {
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &Pool{n: n}
	for i := range n - 1 {
		w := &worker{rank: i + 1, wake: make(chan struct{}, 1), closed: &p.closed}
		p.workers = append(p.workers, w)
		go w.loop()
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
	if p == nil || p.closed.Swap(true) {
		return
	}
	for _, w := range p.workers {
		w.rouse()
	}
}

// worker is a goroutine that waits for jobs, one at a time.
type worker struct {
	job      atomic.Pointer[job] // offered, not yet taken
	sleeping atomic.Bool
	_        [64]byte // what callers look at while they wait shall not share a cache line with what others write
	rank     int
	wake     chan struct{}
	closed   *atomic.Bool
}

// spins is how often a goroutine looks again before it goes to sleep: some fifty microseconds. The instructions of a call follow each
// other at such distances, calls come in bursts, and waking a sleeping thread takes as long as a small call. Other goroutines get
// their turn every yield times.
const (
	spins = 1500
	yield = 500
)

func (w *worker) loop() {
	for spin := 0; !w.closed.Load(); {
		if j := w.job.Load(); j != nil {
			if w.job.CompareAndSwap(j, nil) {
				j.run(w.rank)
				j.leave()
			}
			spin = 0
			continue
		}
		if spin++; spin < spins {
			relax(spin)
			continue
		}
		w.sleeping.Store(true)
		if w.job.Load() == nil && !w.closed.Load() {
			<-w.wake
		}
		w.sleeping.Store(false)
		spin = 0
	}
}

func relax(spin int) {
	if spin%yield == 0 {
		runtime.Gosched()
	}
	pause()
}

// offer gives j to the worker, unless it has another job before it.
func (w *worker) offer(j *job) {
	j.inside.Add(1) // before anybody can leave
	if !w.job.CompareAndSwap(nil, j) {
		j.inside.Add(-1)
		return
	}
	if w.sleeping.Load() {
		w.rouse()
	}
}

// withdraw takes j back if the worker has not begun with it.
func (w *worker) withdraw(j *job) {
	if w.job.Load() == j && w.job.CompareAndSwap(j, nil) {
		j.inside.Add(-1)
	}
}

func (w *worker) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// piece is the part of a job that one goroutine does first.
type piece struct {
	next atomic.Int64 // first element that nobody has taken
	end  int64
	_    [48]byte
}

// job is one call.
type job struct {
	pieces []piece
	chunk  int64
	f      func(lo, hi int)
	inside atomic.Int64                  // workers that have the job
	done   atomic.Pointer[chan struct{}] // for the last of them, if the caller sleeps
	failed atomic.Pointer[any]
}

func (j *job) leave() {
	if j.inside.Add(-1) == 0 {
		if done := j.done.Load(); done != nil {
			*done <- struct{}{}
		}
	}
}

// wait returns when all workers have left.
func (j *job) wait() {
	for spin := 1; j.inside.Load() != 0; spin++ {
		if spin < spins {
			relax(spin)
			continue
		}
		done := make(chan struct{}, 1)
		j.done.Store(&done)
		if j.inside.Load() != 0 {
			<-done
		}
		return
	}
}

// run takes chunks, from the piece of the goroutine's rank first, then from those of others that are late.
func (j *job) run(rank int) {
	defer func() {
		if r := recover(); r != nil {
			j.failed.CompareAndSwap(nil, &r)
			for i := range j.pieces {
				j.pieces[i].next.Store(j.pieces[i].end)
			}
		}
	}()
	for i := range j.pieces {
		p := &j.pieces[(rank+i)%len(j.pieces)]
		for {
			lo := p.next.Add(j.chunk) - j.chunk
			if lo >= p.end {
				break
			}
			j.f(int(lo), int(min(lo+j.chunk, p.end)))
		}
	}
}

// ParallelFor calls f on ranges that cover [0, n), each of at least grain elements but for the last of each goroutine's part. It
// returns when all are done. A panic in f is raised again on the caller.
//
// Every goroutine has a part of its own, the same in each call with the same number of goroutines: the caller the first one. So calls
// over the same rows find them in the caches of the cores that worked on them before. Whoever is done early helps the others.
func (p *Pool) ParallelFor(n, grain int, f func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if p == nil || p.n == 1 || n <= grain || p.closed.Load() {
		f(0, n)
		return
	}
	parts := min(p.n, (n+grain-1)/grain)
	// Small ranges even out what cores differ in speed; very small ones would cost more than they bring.
	j := &job{pieces: make([]piece, parts), chunk: int64(max(grain, n/(16*p.n))), f: f}
	for i := range j.pieces {
		j.pieces[i].next.Store(int64(n * i / parts))
		j.pieces[i].end = int64(n * (i + 1) / parts)
	}
	workers := p.workers[:parts-1]
	for _, w := range workers {
		w.offer(j)
	}
	j.run(0)
	for _, w := range workers {
		w.withdraw(j)
	}
	j.wait()
	if r := j.failed.Load(); r != nil {
		panic(*r)
	}
}
