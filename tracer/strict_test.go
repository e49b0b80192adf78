package tracer_test

import (
	"strings"
	"testing"

	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
	"github.com/pt2go/pt2/tracer/nn"
)

// counting keeps the number of its calls, in one of several places.
type counting struct {
	Lin   *nn.Linear
	Buf   *tracer.Buffer
	count int
	seen  []string
	where string
}

var outside int

func (m *counting) InputNames() []string { return []string{"x"} }

func (m *counting) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	y := tracer.Call1(m.Lin, x[0])
	switch m.where {
	case "field":
		m.count++
	case "slice":
		m.seen = append(m.seen, "call")
	case "buffer":
		m.Buf.T = tensor.New(tensor.Float32, 3)
	case "outside":
		if outside++; outside%2 == 0 {
			y = y.Op("neg")
		}
	}
	return tensors{y}
}

// A model with hidden state is exported, but not strictly.
func TestStrict(t *testing.T) {
	for where, text := range map[string]string{"": "", "field": "Forward changed field count of *tracer_test.counting", "slice": "Forward changed field seen", "buffer": "Forward changed buf's tensor",
		"outside": "Forward does other things when it is called a second time"} {
		m := &counting{Lin: nn.NewLinear(nn.Seed(1), 3, 3), Buf: &tracer.Buffer{T: tensor.New(tensor.Float32, 3), Persistent: true}, where: where}
		if _, err := tracer.Export(m, []*tensor.Tensor{ramp(4, 3)}); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		_, err := tracer.Export(m, []*tensor.Tensor{ramp(4, 3)}, tracer.Strict())
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s: %v, want %q", where, err, text)
		}
	}
}
