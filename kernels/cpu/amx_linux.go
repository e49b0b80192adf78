//go:build amd64 && !purego

package cpu

import "syscall"

// permitTiles asks the kernel for the use of the tile registers, whose state is so large that each process must ask (Linux 5.16 and later). It
// is refused where a thread's stack for signals would be too small for it.
func permitTiles() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
