package main

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/examples/internal/data"
)

// A generated tone has a known pitch. Hearers notice differences of about 5 to 10 cents; the net's bins are 20 cents apart.
func TestPitchOfTones(t *testing.T) {
	m, err := pt2.Load(data.Path("real-public", "crepe-tiny", "model.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, hz := range []float64{82.41, 220, 440, 987.77} {
		found, err := pitches(context.Background(), m, tone(hz, 4000))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range found {
			if cents := 1200 * math.Log2(p.Hz/hz); math.Abs(cents) > 12 || p.Confidence < 0.5 {
				t.Errorf("%g Hz, frame %d: %.2f Hz, %.1f cents off, confidence %.2f", hz, i, p.Hz, cents, p.Confidence)
			}
		}
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-hz", "440", "-seconds", "0.3"}, &out); err != nil || !strings.Contains(out.String(), " Hz  confidence 0.") {
		t.Errorf("%s %v", out.String(), err)
	}
	for _, args := range [][]string{{"-seconds", "0.01"}, {"-model", "none.pt2"}, {"-what"}} {
		if err := run(args, &out); err == nil {
			t.Errorf("%q went well", args)
		}
	}
}
