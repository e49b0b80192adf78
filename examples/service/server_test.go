package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/examples/internal/data"
)

func testServer(t *testing.T, timeout time.Duration) (*server, *httptest.Server) {
	t.Helper()
	m, err := pt2.Load(data.Path("real-public", "efficientnet-lite0", "model.pt2"), pt2.WithRunners(2))
	if err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadFile(data.Path("imagenet_classes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(m, strings.Split(string(names), "\n"), timeout)
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.Close(); m.Close() })
	return s, h
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	return read(t)(http.Get(url))
}

func read(t *testing.T) func(*http.Response, error) (int, string) {
	return func(r *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		return r.StatusCode, string(b)
	}
}

func photo(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(data.Path("grace_hopper.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// PyTorch says class 652, military uniform, for this photo.
func TestClassify(t *testing.T) {
	s, h := testServer(t, time.Minute)
	if status, _ := get(t, h.URL+"/healthz"); status != http.StatusServiceUnavailable {
		t.Errorf("cold: %d", status)
	}
	if err := s.warm(context.Background()); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, h.URL+"/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("warm: %d %s", status, body)
	}
	jpeg := photo(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			status, body := read(t)(http.Post(h.URL+"/classify", "image/jpeg", bytes.NewReader(jpeg)))
			var top []class
			if err := json.Unmarshal([]byte(body), &top); err != nil || status != http.StatusOK || len(top) != 5 || top[0].Index != 652 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	wg.Wait()
	if _, body := get(t, h.URL+"/metrics"); !strings.Contains(body, "classify_requests_total 4\n") || !strings.Contains(body, "classify_failures_total 0\n") || !strings.Contains(body, "classify_running 0\n") {
		t.Error(body)
	}
}

func TestBadRequests(t *testing.T) {
	_, h := testServer(t, time.Minute)
	for body, want := range map[string]int{"": http.StatusBadRequest, "no picture": http.StatusBadRequest, strings.Repeat("x", maxBody+1): http.StatusRequestEntityTooLarge} {
		if status, text := read(t)(http.Post(h.URL+"/classify", "", strings.NewReader(body))); status != want {
			t.Errorf("%.20s: %d %s", body, status, text)
		}
	}
	if status, _ := get(t, h.URL+"/classify"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	if _, body := get(t, h.URL+"/metrics"); !strings.Contains(body, "classify_failures_total 3\n") {
		t.Error(body)
	}
}

func TestTimeout(t *testing.T) {
	_, h := testServer(t, time.Nanosecond)
	if status, body := read(t)(http.Post(h.URL+"/classify", "image/jpeg", bytes.NewReader(photo(t)))); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}

func TestRunEndsGracefully(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	addr := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "localhost:0"}, func(a string) { addr <- a }) }()
	url := "http://" + <-addr
	for status := 0; status != http.StatusOK; {
		status, _ = get(t, url+"/healthz")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("still serving")
	}
	for _, args := range [][]string{{"-model", "none.pt2"}, {"-labels", "none.txt"}, {"-addr", "nowhere:x"}, {"-runners", "0"}, {"-what"}} {
		if err := run(ctx, args, func(string) {}); err == nil {
			t.Errorf("%q went well", args)
		}
	}
}
