//go:build !linux

package mmap

func want([]byte) {}
