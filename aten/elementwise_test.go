package aten

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// TestElementwise holds arithmetic, comparisons, unary and special functions, activations, losses and their gradients
// against PyTorch's answers, over dtypes and special values. testdata/elementwise.py writes the file.
func TestElementwise(t *testing.T) {
	f, err := os.Open("testdata/elementwise.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var c goldenCall
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%d_%s", n, c.Op), func(t *testing.T) { checkGolden(t, &c) })
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
