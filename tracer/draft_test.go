package tracer_test

import (
	"strings"
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
	f "github.com/pt2go/pt2/tracer/functional"
)

// Questions that only data can answer get the example's answer; the program checks it, and the report says so.
func TestDraftExportOfData(t *testing.T) {
	for name, c := range map[string]struct {
		model   asks
		i       *tensor.Tensor
		refused *tensor.Tensor
		expr    string
	}{
		"branch": {func(x, i *tracer.Tensor) any {
			if i.Int().Gt(symbolic.N(2)) {
				return f.Neg(x)
			}
			return x
		}, int0(3), int0(2), "2 < u0"},
		"number": {func(x, i *tracer.Tensor) any { return f.MulScalar(x, i.Int().Int64()) }, int0(3), int0(4), "Eq(u0, 3)"},
		"twice": {func(x, i *tracer.Tensor) any {
			for range 2 {
				if i.Int().Gt(symbolic.N(2)) {
					x = f.Neg(x)
				}
			}
			return x
		}, int0(3), int0(2), "2 < u0"},
		"rows": {func(x, i *tracer.Tensor) any {
			if f.Nonzero(i).Size(0).Eq(symbolic.N(2)) {
				return f.Neg(x)
			}
			return x
		}, ints(0, 1, 5), ints(0, 1, 0), "Eq(u0, 2)"},
		"float": {func(x, i *tracer.Tensor) any { return f.MulScalar(x, i.Float().Value()) }, float0(1.5), float0(2), "Eq(zuf0, 1.5)"},
	} {
		p, report, err := tracer.DraftExport(c.model, []any{ramp(4, 3), c.i})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := tracer.RunCall(c.model, nil, []any{ramp(4, 3), c.i})
		if err != nil {
			t.Fatal(err)
		}
		got, err := runLeaves(p, ramp(4, 3), c.i)
		if err != nil {
			t.Errorf("%s: %v\n%v", name, err, p)
			continue
		}
		sameLeaves(t, name, got, flat(t, want))
		if _, err := runLeaves(p, ramp(4, 3), c.refused); err == nil {
			t.Errorf("%s takes other data\n%v", name, p)
		}
		if report.Successful() || len(report.Failures) != 1 || report.Failures[0].Type != tracer.DataDependentFailure || report.Failures[0].Expr != c.expr {
			t.Errorf("%s: %v", name, report)
		}
		text := report.String()
		for _, s := range []string{"WARNING: 1 issue(s) found during export", "we were unable to evaluate the value of `" + c.expr + "`", "draft_test.go, lineno ", "Please add `tracer.Check(...)`"} {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %s\nwant %q", name, text, s)
			}
		}
		if len(report.ExpressionsCreated) == 0 || len(report.StrToFilename) == 0 {
			t.Errorf("%s: %v, %v", name, report.ExpressionsCreated, report.StrToFilename)
		}
	}
}

// Operators that do not describe their results, or wrongly, are described by what they give.
func TestDraftExportOfOperators(t *testing.T) {
	halve := func(k *aten.Kernel) []*tensor.Tensor {
		return []*tensor.Tensor{tensor.New(tensor.Float32, k.T(0).Sizes()[0]/2)}
	}
	missing := &aten.Op{Schema: "mine::halve(Tensor x) -> Tensor", Tags: aten.DataDependent, Dynamic: halve}
	m := asks(func(x, i *tracer.Tensor) any { return f.AddScalar(x.On("mine.halve.default", x), 1) })
	if _, err := tracer.Export(m, []any{ramp(4, 3), ramp(2)}, tracer.WithOps(missing)); err == nil {
		t.Fatal("Export describes what no one does")
	}
	p, report, err := tracer.DraftExport(m, []any{ramp(4, 3), ramp(2)}, tracer.WithOps(missing))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failures) != 1 || report.Failures[0].Type != tracer.MissingFakeKernel || len(report.OpProfiles) != 1 || !strings.Contains(report.String(), "Missing fake kernel.\n    torch.ops.mine.halve.default is missing") {
		t.Error(report)
	}
	if !strings.Contains(p.String(), `"f32[u0]"`) {
		t.Error(p)
	}
}

// A Dim that the code does not keep becomes automatic.
func TestDraftExportOfViolations(t *testing.T) {
	d := tracer.MustDim("rows")
	if _, err := tracer.Export(long{}, []any{ramp(6, 3)}, tracer.WithDynamic("x", 0, d)); err == nil {
		t.Fatal("no violation")
	}
	p, report, err := tracer.DraftExport(long{}, []any{ramp(6, 3)}, tracer.WithDynamic("x", 0, d))
	if err != nil {
		t.Fatal(err)
	}
	if report.Successful() || report.Failures[0].Type != tracer.GuardAdded || !strings.Contains(report.String(), "Guard Added.") || !strings.Contains(report.String(), "L['x'].size()[0]") {
		t.Error(report)
	}
	for rows, ok := range map[int64]bool{5: true, 9: true, 4: false} {
		if _, err := runLeaves(p, ramp(rows, 3)); (err == nil) != ok {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
}

func TestDraftExportFindsNothing(t *testing.T) {
	p, report, err := tracer.DraftExport(long{}, []any{ramp(6, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Successful() || !strings.Contains(report.String(), "Congratulations: No issues are found during export") {
		t.Error(report)
	}
	if _, err := runLeaves(p, ramp(6, 3)); err != nil {
		t.Error(err)
	}
}

// What the code asks of sizes is checked by the program, not guarded.
func TestPreferDeferredRuntimeAsserts(t *testing.T) {
	d := tracer.MustDim("rows")
	p, err := tracer.Export(long{}, []any{ramp(6, 3)}, tracer.WithDynamic("x", 0, d), tracer.PreferDeferredRuntimeAsserts())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.GuardsCode()) > 0 {
		t.Error(p.GuardsCode())
	}
	for rows, ok := range map[int64]bool{5: true, 9: true, 4: false} {
		_, err := runLeaves(p, ramp(rows, 3))
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "Runtime assertion failed for expression") {
			t.Errorf("%d rows: %v\n%v", rows, err, p)
		}
	}
}
