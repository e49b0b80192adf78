//go:build purego || !amd64

package pool

import "runtime"

// pause lets others go on.
func pause() { runtime.Gosched() }
