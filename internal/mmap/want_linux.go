package mmap

import "golang.org/x/sys/unix"

func want(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_READ) } // since Linux 5.14; pages come one by one before
