package pt2_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/conformance"
)

// Different models load, run, change and close side by side; they share the pool of workers and nothing else.
func TestDifferentModelsAtOnce(t *testing.T) {
	ids := []string{"v2.15.0-mlp", "v2.15.0-cnn", "v2.15.0-block", "v2.15.0-dyn", "v2.15.0-count", "v2.15.0-cond", "v2.1.2-cnn", "v2.15.0-item"}
	var wg sync.WaitGroup
	for _, id := range ids {
		dir := oldCase(t, id)
		recorded := calls(t, dir)
		for range 2 { // the same file twice as well
			wg.Go(func() {
				for range 3 {
					if err := loadAndRun(dir, recorded); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func loadAndRun(dir string, recorded []conformance.Call) error {
	m, err := pt2.Load(dir+"/model.pt2", pt2.WithRunners(2), pt2.WithMemoryLimit(1<<30))
	if err != nil {
		return err
	}
	defer m.Close()
	for i := range recorded {
		c := &recorded[i]
		out, err := m.Run(context.Background(), conformance.CloneInputs(c.Inputs)...)
		if c.Failed != (err != nil) {
			return fmt.Errorf("call %d: %v", i, err)
		}
		if err == nil {
			err = conformance.Compare(out, c.Outputs, tolerance)
		}
		if err != nil && !c.Failed {
			return fmt.Errorf("call %d: %w", i, err)
		}
		m.Trim()
	}
	return nil
}

// Instances of one stateful model run side by side, each with its own buffers.
func TestInstancesAtOnce(t *testing.T) {
	dir := oldCase(t, "v2.15.0-count")
	recorded := calls(t, dir)
	m := open(t, dir+"/model.pt2")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			stream, err := m.Instance()
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				for i := range recorded {
					out, err := stream.Run(context.Background(), conformance.CloneInputs(recorded[i].Inputs)...)
					if err == nil {
						err = conformance.Compare(out, recorded[i].Outputs, tolerance)
					}
					if err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				}
				stream.Reset()
			}
		})
	}
	wg.Wait()
}
