// Package pool splits work over a fixed number of workers.
package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is a set of workers. A nil Pool runs everything on the calling goroutine. It is safe for concurrent use: callers
// share the workers, and work that finds none idle runs on the caller.
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
	p := &Pool{n: n, jobs: make(chan *job)}
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

type job struct {
	next   atomic.Int64
	n      int64
	chunk  int64
	f      func(lo, hi int)
	wg     sync.WaitGroup
	failed atomic.Pointer[any]
}

func (p *Pool) worker() {
	for j := range p.jobs {
		j.run()
		j.wg.Done()
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
	chunk := max(grain, (n+4*p.n-1)/(4*p.n))
	j := &job{n: int64(n), chunk: int64(chunk), f: f}
	helpers := min(p.n-1, (n-1)/chunk)
	for range helpers {
		j.wg.Add(1)
		if !p.offer(j) {
			j.wg.Done()
			break
		}
	}
	j.run()
	j.wg.Wait()
	if r := j.failed.Load(); r != nil {
		panic(*r)
	}
}

// offer hands j to an idle worker, if there is one.
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
