// Command service classifies photos over HTTP:
//
//	go run ./examples/service
//	curl --data-binary @photo.jpg localhost:8080/classify
//
// It answers /healthz once the model is warm, shows a few numbers at /metrics, and ends gracefully on SIGINT and SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/examples/internal/data"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], func(addr string) { log.Printf("listening on %s", addr) }); err != nil {
		log.Fatal("service: ", err)
	}
}

// run serves until ctx ends. It calls started with its address.
func run(ctx context.Context, args []string, started func(addr string)) error {
	fs := flag.NewFlagSet("service", flag.ContinueOnError)
	addr := fs.String("addr", "localhost:8080", "address to listen on")
	model := fs.String("model", data.Path("real-public", "efficientnet-lite0", "model.pt2"), "PT2 archive of an ImageNet classifier")
	labels := fs.String("labels", data.Path("imagenet_classes.txt"), "class names, one a line")
	runners := fs.Int("runners", 2, "calls that run at the same time; others wait")
	timeout := fs.Duration("timeout", 5*time.Second, "longest time for one request")
	if err := fs.Parse(args); err != nil {
		return err
	}
	names, err := os.ReadFile(*labels)
	if err != nil {
		return err
	}
	m, err := pt2.Load(*model, pt2.WithRunners(*runners))
	if err != nil {
		return err
	}
	defer m.Close()
	s := newServer(m, strings.Split(strings.TrimSpace(string(names)), "\n"), *timeout)
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	started(l.Addr().String())
	if err := s.warm(ctx); err != nil {
		srv.Close()
		return fmt.Errorf("warm-up: %w", err)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Requests that have begun may finish; the model is closed after them.
	end, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := srv.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
