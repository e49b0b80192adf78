package aten

import "testing"

// PyTorch's schemas of some out variants, of each form that there is.
func TestOutVariantSchemas(t *testing.T) {
	for name, want := range map[string]string{
		"aten.add.out":          "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
		"aten.max.dim_max":      "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!), Tensor(b!))",
		"aten.sum.IntList_out":  "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
		"aten.arange.start_out": "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
		"aten.std.out":          "aten::std.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
		"aten.linalg_svd.U":     "aten::linalg_svd.U(Tensor A, bool full_matrices=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
		"aten.where.self_out":   "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
	} {
		op := Builtin().Lookup(name)
		if op == nil {
			t.Errorf("%s is missing", name)
		} else if got := op.Signature().String(); got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	missing := 0
	for name, form := range outForms() {
		if Builtin().Lookup("aten."+name) == nil {
			missing++
			if testing.Verbose() {
				t.Log("no", name, "of", form.overload)
			}
		}
	}
	if missing > len(outForms())/2 {
		t.Errorf("%d of %d out variants are missing", missing, len(outForms()))
	}
	t.Logf("%d of %d out variants are there", len(outForms())-missing, len(outForms()))
}
