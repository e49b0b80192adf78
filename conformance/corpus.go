package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/pt2go/pt2/archive"
)

// Unpack unpacks a corpus, a NAME.tar.zst that holds a folder NAME, below dir and gives that folder.
func Unpack(path, dir string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("conformance: %w", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return "", fmt.Errorf("conformance: %s: %w", path, err)
	}
	defer z.Close()
	if err := archive.Untar(z, dir); err != nil {
		return "", fmt.Errorf("conformance: %s: %w", path, err)
	}
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".tar.zst")), nil
}
