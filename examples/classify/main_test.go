package main

import (
	"strings"
	"testing"
)

// PyTorch says class 652, military uniform, for this photo.
func TestClassifyAgreesWithPyTorch(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 6 || !strings.Contains(lines[1], "652  military uniform") {
		t.Errorf("got %s", out.String())
	}
}

func TestErrors(t *testing.T) {
	for _, args := range [][]string{{"-model", "none.pt2"}, {"-image", "none.jpg"}, {"-image", "main.go"}, {"-labels", "none.txt"}, {"-what"}} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%q went well", args)
		}
	}
}
