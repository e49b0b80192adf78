// Package data finds the files that the examples run on.
package data

import (
	"os"
	"path/filepath"
)

// Path is a file or folder below the repository's testdata, from wherever in the repository the command was started.
func Path(elem ...string) string { return filepath.Join(append([]string{root()}, elem...)...) }

func root() string {
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		data := filepath.Join(dir, "testdata")
		if _, err := os.Stat(filepath.Join(data, "NOTICE.md")); err == nil {
			return data
		}
		if abs, err := filepath.Abs(dir); err != nil || abs == filepath.Dir(abs) {
			return "testdata"
		}
	}
}
