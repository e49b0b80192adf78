package tracer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tracer"
)

func TestShapesCollection(t *testing.T) {
	x, y := ramp(6, 3), ramp(7, 3)
	b := tracer.MustDim("b", tracer.Min(5))
	var c tracer.ShapesCollection
	c.Set(x, tracer.DimMap{0: b})
	c.Set(y, tracer.DimMap{0: b.Add(1)})
	if c.Len() != 2 || c.Get(x) == nil {
		t.Errorf("%d tensors", c.Len())
	}
	shapes, err := c.DynamicShapes(shifted{}, []any{x, y})
	if err != nil {
		t.Fatal(err)
	}
	p, err := tracer.Export(shifted{}, []any{x, y}, tracer.WithShapes(shapes))
	if err != nil || len(p.RangeConstraints()) != 2 {
		t.Fatal(err)
	}
	if _, err := c.DynamicShapes(shifted{}, []any{x, x}); err == nil || !strings.Contains(err.Error(), "were not found in args/kwargs") {
		t.Error(err)
	}
	c.Set(x, tracer.DimMap{0: tracer.Auto})
	if _, err := c.DynamicShapes(shifted{}, []any{x, y}); err == nil || !strings.Contains(err.Error(), "ambiguous") {
		t.Error(err)
	}
}

func TestAdditionalInputs(t *testing.T) {
	args := []any{ramp(6, 3), 5}
	var more tracer.AdditionalInputs
	more.Add([]any{ramp(8, 3), 7}, nil)
	shapes, err := more.DynamicShapes(halves{}, args)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(shapes); got != "map[n:DimHint.DYNAMIC x:map[0:DimHint.DYNAMIC]]" {
		t.Error(got)
	}
	p, err := tracer.Export(halves{}, args, tracer.WithShapes(shapes))
	if err != nil {
		t.Fatal(err)
	}
	if err := more.Verify(p, halves{}); err != nil {
		t.Error(err)
	}
	more.Add([]any{ramp(9, 3), 7}, nil)
	if err := more.Verify(p, halves{}); err == nil {
		t.Error("an odd number of rows passes")
	}
	var other tracer.AdditionalInputs
	other.Add([]any{ids(8, 3), 7}, nil)
	if _, err := other.DynamicShapes(halves{}, args); err == nil {
		t.Error("another dtype passes")
	}
	var named tracer.AdditionalInputs
	named.Add([]any{ramp(6, 3)}, pytree.Dict{{Key: "n", Value: 5}})
	if _, err := named.DynamicShapes(halves{}, args); err == nil {
		t.Error("another structure passes")
	}
}

// Following the suggestions leads to a program.
func TestRefineFromSuggestedFixes(t *testing.T) {
	six, seven := ramp(6, 3), ramp(7, 3)
	p, q := tracer.MustDim("p"), tracer.MustDim("q")
	for _, c := range []struct {
		model  any
		args   []any
		shapes tracer.Shapes
		want   string
	}{
		{shifted{}, []any{six, seven}, tracer.Shapes{"x": tracer.DimMap{0: p}, "y": tracer.DimMap{0: q}}, "map[x:map[0:Dim('p', min=0)] y:map[0:p + 1]]"},
		{halves{}, []any{six, 5}, tracer.Shapes{"x": tracer.DimList{p, nil}, "n": nil}, "map[n:<nil> x:[2*_p, None]]"},
		{long{}, []any{six}, tracer.Shapes{"x": tracer.DimMap{0: p}}, "map[x:map[0:Dim('p', min=5)]]"},
		{pinnedRows{}, []any{six}, tracer.Shapes{"x": tracer.DimMap{0: p}}, "map[x:map[0:6]]"},
	} {
		_, err := tracer.Export(c.model, c.args, tracer.WithShapes(c.shapes))
		var user *tracer.UserError
		if !errors.As(err, &user) {
			t.Errorf("%T: %v", c.model, err)
			continue
		}
		better, err := tracer.RefineDynamicShapesFromSuggestedFixes(user.Msg, c.shapes)
		if err != nil || fmt.Sprint(better) != c.want {
			t.Errorf("%T: %v, want %s (%v)", c.model, better, c.want, err)
			continue
		}
		if _, err := tracer.Export(c.model, c.args, tracer.WithShapes(better)); err != nil {
			t.Errorf("%T: with its suggestion: %v", c.model, err)
		}
	}
	if _, err := tracer.RefineDynamicShapesFromSuggestedFixes("no", nil); err == nil {
		t.Error("a message without fixes passes")
	}
}
