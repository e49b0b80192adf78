//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

// hasAVX2 chooses the assembly; tests turn it off to compare. Every CPU with AVX2 also converts half floats (F16C), which x/sys
// does not tell.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA
