//go:build !purego

package cpu

import (
	"sync"

	"golang.org/x/sys/cpu"
)

// hasAVX2 chooses the assembly; tests turn it off to compare. Every CPU with AVX2 also converts half floats (F16C), which x/sys
// does not tell.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// hasAVX512 chooses the forms of 512 bits over those. The extensions asked for came together, but for the first Xeon Phi.
var hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasBMI2

// hasVNNI chooses the products of 8-bit integers in one instruction.
var hasVNNI = hasAVX512 && cpu.X86.HasAVX512VNNI

// hasAMX chooses the products of tiles of 8-bit integers. The system must be asked for the use of their registers, so only a program that
// packs such weights asks.
var hasAMX = sync.OnceValue(func() bool {
	return hasVNNI && cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8 && permitTiles()
})
