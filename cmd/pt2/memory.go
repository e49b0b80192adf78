package main

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// peakMB is the peak resident memory in MB of 10^6 bytes where the system tells (VmHWM), else what the Go heap took.
func peakMB() float64 {
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				if f := strings.Fields(rest); len(f) > 0 {
					kb, _ := strconv.ParseFloat(f[0], 64)
					return kb * 1024 / 1e6
				}
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys) / 1e6
}

func meanStd(v []float64) []float64 {
	mean := 0.0
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	ss := 0.0
	for _, x := range v {
		ss += (x - mean) * (x - mean)
	}
	if len(v) == 1 {
		return []float64{mean, 0}
	}
	return []float64{mean, math.Sqrt(ss / float64(len(v)-1))}
}
