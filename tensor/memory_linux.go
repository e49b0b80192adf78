package tensor

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// MachineMemory is what this process can have in bytes: the machine's memory, or less where a control group says so. 0 where that is
// not known.
var MachineMemory = sync.OnceValue(func() int64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(uint64(info.Totalram) * uint64(info.Unit))
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
			total = min(total, n)
		}
	}
	return total
})
