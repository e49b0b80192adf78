//go:build linux || darwin || freebsd || netbsd || openbsd

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(b []byte) error { return unix.Munmap(b) }

func drop(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) } // advice that is refused does no harm
