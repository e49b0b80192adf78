package golden

import (
	"os"
	"os/exec"
	"testing"
)

// Python gives the command of a Python that has PyTorch 2.15, from the environment variable PT2_PYTHON. Without one the test is
// skipped.
func Python(tb testing.TB) string {
	tb.Helper()
	python := os.Getenv("PT2_PYTHON")
	if python == "" {
		tb.Skip("PT2_PYTHON names no Python with PyTorch (pip install torch==2.15.0), whose judgement this test is")
	}
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		tb.Skipf("PT2_PYTHON=%s has no PyTorch: %v", python, err)
	}
	return python
}
