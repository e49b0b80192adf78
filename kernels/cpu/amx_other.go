//go:build amd64 && !purego && !linux

package cpu

// permitTiles is false: only Linux is known to let the tile registers be used.
func permitTiles() bool { return false }
