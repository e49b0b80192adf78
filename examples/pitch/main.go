// Command pitch tells the pitch of a tone with CREPE, a pretrained pitch tracker. The tone is generated.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/examples/internal/data"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal("pitch: ", err)
	}
}

const (
	rate  = 16000 // samples a second
	frame = 1024  // samples that the net sees
	hop   = 160   // samples between frames
)

func run(args []string, w io.Writer) error {
	fs := flag.NewFlagSet("pitch", flag.ContinueOnError)
	model := fs.String("model", data.Path("real-public", "crepe-tiny", "model.pt2"), "PT2 archive of CREPE")
	hz := fs.Float64("hz", 440, "frequency of the tone, 50 to 1900")
	seconds := fs.Float64("seconds", 0.5, "its length")
	if err := fs.Parse(args); err != nil {
		return err
	}
	m, err := pt2.Load(*model)
	if err != nil {
		return err
	}
	defer m.Close()
	found, err := pitches(context.Background(), m, tone(*hz, int(*seconds*rate)))
	if err != nil {
		return err
	}
	for i := 0; i < len(found); i += 10 {
		p := found[i]
		fmt.Fprintf(w, "%4.2f s  %7.2f Hz  confidence %.2f\n", float64(i*hop)/rate, p.Hz, p.Confidence)
	}
	return nil
}

// tone is a note with a few overtones.
func tone(hz float64, samples int) []float32 {
	out := make([]float32, samples)
	for i := range out {
		for k := 1.0; k <= 4 && k*hz < rate/2; k++ {
			out[i] += float32(math.Sin(2*math.Pi*k*hz*float64(i)/rate) / (2 * k))
		}
	}
	return out
}

// Pitch is what the net hears in one frame.
type Pitch struct{ Hz, Confidence float64 }

// pitches gives the pitch every 10 ms of a sound of 16 kHz.
func pitches(ctx context.Context, m *pt2.Model, sound []float32) ([]Pitch, error) {
	var frames [][]float32
	for at := 0; at+frame <= len(sound); at += hop {
		frames = append(frames, normalized(sound[at:at+frame]))
	}
	if len(frames) == 0 {
		return nil, fmt.Errorf("the sound is shorter than %d samples", frame)
	}
	salience, err := pt2.Call[[][]float32](ctx, m, frames) // [frames, 360]
	if err != nil {
		return nil, err
	}
	out := make([]Pitch, len(salience))
	for i, s := range salience {
		out[i] = decode(s)
	}
	return out, nil
}

// normalized brings a frame to mean 0 and standard deviation 1.
func normalized(x []float32) []float32 {
	mean, dev := 0.0, 0.0
	for _, v := range x {
		mean += float64(v) / frame
	}
	for _, v := range x {
		dev += (float64(v) - mean) * (float64(v) - mean) / frame
	}
	out := make([]float32, frame)
	for i, v := range x {
		out[i] = float32((float64(v) - mean) / math.Max(math.Sqrt(dev), 1e-10))
	}
	return out
}

// decode takes the mean over the bins around the strongest one. Bins are 20 cents apart, the first one is about 31.7 Hz (Kim et
// al., CREPE: A Convolutional Representation for Pitch Estimation).
func decode(salience []float32) Pitch {
	best := 0
	for i, v := range salience {
		if v > salience[best] {
			best = i
		}
	}
	sum, cents := 0.0, 0.0
	for i := max(best-4, 0); i <= min(best+4, len(salience)-1); i++ {
		sum += float64(salience[i])
		cents += float64(salience[i]) * (1997.3794084376191 + 20*float64(i))
	}
	return Pitch{10 * math.Exp2(cents/sum/1200), float64(salience[best])}
}
