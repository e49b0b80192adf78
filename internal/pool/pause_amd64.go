//go:build !purego

package pool

// pause tells the core that a loop waits for another one.
func pause()
