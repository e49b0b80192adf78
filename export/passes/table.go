package passes

import (
	_ "embed"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
)

// Decomp writes an operator as a formula over others: it gives a value for each tensor that the operator returns, the elements of
// a list one after the other, nil for one that it does not give.
type Decomp func(b *aten.Build, a *aten.Args) []*aten.Value

// DecompTable says which operators [RunDecompositions] takes apart, by names such as "aten.linear.default", and how. An entry
// without a formula of its own takes that of the registry, if there is one; else the operator stays. It is PyTorch's
// CustomDecompTable, without its treatment of operators that are registered later: a table is what it holds.
type DecompTable struct{ entries map[string]Decomp }

//go:embed default_decompositions.txt
var defaultNames string

//go:embed always_decomposed.txt
var alwaysNames string

// always holds the composite operators whose results may share memory with arguments. They have no place in the functional dialect,
// so PyTorch takes them apart whatever the table says.
var always = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.Lines(alwaysNames) {
		m[strings.TrimSpace(name)] = true
	}
	return m
}()

// DefaultDecompositions makes a table of the 902 aten operators that PyTorch 2.15's default_decompositions() holds.
func DefaultDecompositions() *DecompTable {
	t := NewDecompTable()
	for name := range strings.Lines(defaultNames) {
		name = strings.TrimSpace(name)
		t.entries[name] = formulas[name]
	}
	return t
}

// NewDecompTable makes an empty table: composite operators stay, in-place ones still become functional.
func NewDecompTable() *DecompTable { return &DecompTable{entries: map[string]Decomp{}} }

// KeyError is a name that a table does not hold.
type KeyError struct{ Op string }

// Error names the operator.
func (e *KeyError) Error() string { return "passes: KeyError: " + e.Op }

// Get finds an entry; its formula is nil where the registry's is taken.
func (t *DecompTable) Get(op string) (Decomp, error) {
	d, ok := t.entries[trim(op)]
	if !ok {
		return nil, &KeyError{op}
	}
	return d, nil
}

// Set adds or replaces an entry; a nil formula stands for the registry's.
func (t *DecompTable) Set(op string, d Decomp) { t.entries[trim(op)] = d }

// Delete removes an entry, so that the operator stays as it is. A missing one is a *[KeyError].
func (t *DecompTable) Delete(op string) error {
	_, err := t.Pop(op)
	return err
}

// Has reports an entry.
func (t *DecompTable) Has(op string) bool { _, ok := t.entries[trim(op)]; return ok }

// Len is the number of entries.
func (t *DecompTable) Len() int { return len(t.entries) }

// All iterates over the entries, sorted by name.
func (t *DecompTable) All() iter.Seq2[string, Decomp] {
	return func(yield func(string, Decomp) bool) {
		for _, k := range t.Keys() {
			if !yield(k, t.entries[k]) {
				return
			}
		}
	}
}

// Keys lists the names, sorted.
func (t *DecompTable) Keys() []string { return slices.Sorted(maps.Keys(t.entries)) }

// Clone makes an independent copy.
func (t *DecompTable) Clone() *DecompTable { return &DecompTable{entries: maps.Clone(t.entries)} }

// Pop removes an entry and gives it. A missing one is a *[KeyError].
func (t *DecompTable) Pop(op string) (Decomp, error) {
	d, err := t.Get(op)
	delete(t.entries, trim(op))
	return d, err
}

// PopOr is [DecompTable.Pop] with what to give for a missing entry.
func (t *DecompTable) PopOr(op string, missing Decomp) Decomp {
	if d, err := t.Pop(op); err == nil {
		return d
	}
	return missing
}

// Update sets all entries of another table.
func (t *DecompTable) Update(other *DecompTable) { maps.Copy(t.entries, other.entries) }

// Materialize gives the entries as a map of their own.
func (t *DecompTable) Materialize() map[string]Decomp { return maps.Clone(t.entries) }

func trim(op string) string { return strings.TrimPrefix(op, "torch.ops.") }

// formula is what the table does with an operator, nil if it stays.
func (t *DecompTable) formula(op *aten.Op) Decomp {
	d, ok := t.entries[op.Name()]
	switch {
	case !ok && !always[op.Name()]:
		return nil
	case !ok:
		d = formulas[op.Name()]
	}
	switch {
	case d != nil:
		return d
	}
	if op.Decomp != nil && !strings.HasPrefix(op.Derived(), "in-place") {
		return op.Decomp
	}
	return nil
}

// String counts the entries.
func (t *DecompTable) String() string {
	return fmt.Sprintf("DecompTable(%d operators)", len(t.entries))
}
