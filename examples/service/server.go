package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/examples/internal/vision"
)

// maxBody bounds an uploaded picture in bytes.
const maxBody = 16 << 20

// server is the HTTP handler.
type server struct {
	mux     *http.ServeMux
	model   *pt2.Model
	names   []string
	timeout time.Duration
	ready   atomic.Bool

	requests, failures, running atomic.Int64
	micros                      atomic.Int64 // spent in successful requests
}

func newServer(m *pt2.Model, names []string, timeout time.Duration) *server {
	s := &server{mux: http.NewServeMux(), model: m, names: names, timeout: timeout}
	s.mux.HandleFunc("POST /classify", s.classify)
	s.mux.HandleFunc("GET /healthz", s.healthz)
	s.mux.HandleFunc("GET /metrics", s.metrics)
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// warm runs the archive's example inputs, so that the first request is no slower than others; then the server is ready.
func (s *server) warm(ctx context.Context) error {
	if err := s.model.Warmup(ctx); err != nil {
		return err
	}
	s.ready.Store(true)
	return nil
}

// class is one line of an answer.
type class struct {
	Index       int     `json:"index"`
	Name        string  `json:"name"`
	Probability float64 `json:"probability"`
}

func (s *server) classify(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	start := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	top, status, err := s.answer(ctx, http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.failures.Add(1)
		http.Error(w, err.Error(), status)
		return
	}
	s.micros.Add(time.Since(start).Microseconds())
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(top) // the client may be gone, which is no fault of ours
}

// answer classifies a picture; status is for errors.
func (s *server) answer(ctx context.Context, body io.Reader) (top []class, status int, err error) {
	b, err := io.ReadAll(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, err
	case err != nil:
		return nil, http.StatusBadRequest, err
	}
	img, err := vision.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("the body must be a JPEG or PNG picture: %w", err)
	}
	logits, err := pt2.Call[[]float32](ctx, s.model, vision.Scaled(img, 224))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, http.StatusServiceUnavailable, err
	case err != nil:
		return nil, http.StatusInternalServerError, err
	}
	for _, c := range vision.Top(logits, s.names, 5) {
		top = append(top, class{c.Index, c.Name, c.P})
	}
	return top, 0, nil
}

func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	if !s.ready.Load() {
		http.Error(w, "warming up", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// metrics are in Prometheus' text format.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# TYPE classify_requests_total counter\nclassify_requests_total %d\n", s.requests.Load())
	fmt.Fprintf(w, "# TYPE classify_failures_total counter\nclassify_failures_total %d\n", s.failures.Load())
	fmt.Fprintf(w, "# TYPE classify_running gauge\nclassify_running %d\n", s.running.Load())
	fmt.Fprintf(w, "# TYPE classify_seconds_total counter\nclassify_seconds_total %g\n", float64(s.micros.Load())/1e6)
}
