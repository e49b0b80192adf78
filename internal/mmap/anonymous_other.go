//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package mmap

import "errors"

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) error { return nil }
