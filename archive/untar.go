package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Untar unpacks the regular files of a tar stream below dir. Names that would leave dir are refused.
func Untar(r io.Reader, dir string) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: tar: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := checkName(h.Name); err != nil {
			return &FormatError{h.Name, 0, err.Error(), ErrFormat}
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(h.Name)), t); err != nil {
			return err
		}
	}
}

func writeFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return fmt.Errorf("archive: %w", err)
	}
	return f.Close()
}

// ExtractTo writes the records whose names keep accepts (nil: all) as files below dir.
func (r *Reader) ExtractTo(dir string, keep func(name string) bool) (n int, err error) {
	for _, e := range r.records {
		if keep != nil && !keep(e.Name) {
			continue
		}
		b, err := r.Contents(e)
		if err != nil {
			return n, err
		}
		path := filepath.Join(dir, filepath.FromSlash(e.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return n, fmt.Errorf("archive: %w", err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return n, fmt.Errorf("archive: %w", err)
		}
		n++
	}
	return n, nil
}
