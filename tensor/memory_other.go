//go:build !linux

package tensor

// MachineMemory is what this process can have in bytes, 0 where that is not known.
func MachineMemory() int64 { return 0 }
