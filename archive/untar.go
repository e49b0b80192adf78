package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// Untar unpacks the regular files of a tar stream below dir, which is made if need be. Names that would leave dir are
// refused, also by way of links that lie in dir.
func Untar(r io.Reader, dir string) error {
	root, err := openRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
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
		if err := writeFile(root, h.Name, t); err != nil {
			return err
		}
	}
}

// ExtractTo writes the records whose names keep accepts (nil: all) as files below dir, which is made if need be. Nothing is
// written outside dir: names that would leave it are refused, also by way of links that lie in dir.
func (r *Reader) ExtractTo(dir string, keep func(name string) bool) (n int, err error) {
	root, err := openRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	for _, e := range r.records {
		if keep != nil && !keep(e.Name) {
			continue
		}
		b, err := r.Contents(e)
		if err != nil {
			return n, err
		}
		if err := makeParent(root, e.Name); err != nil {
			return n, err
		}
		if err := root.WriteFile(filepath.FromSlash(e.Name), b, 0o644); err != nil {
			return n, fmt.Errorf("archive: %w", err)
		}
		n++
	}
	return n, nil
}

func openRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return root, nil
}

// makeParent checks a name by the rules of archives and of this system, and makes the folder that it lies in.
func makeParent(root *os.Root, name string) error {
	if reason := badName(name); reason != "" {
		return &NameError{name, reason}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return &NameError{name, "the name is not one that this system can keep inside a folder"}
	}
	if d := path.Dir(name); d != "." {
		if err := root.MkdirAll(filepath.FromSlash(d), 0o755); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, r io.Reader) error {
	if err := makeParent(root, name); err != nil {
		return err
	}
	f, err := root.Create(filepath.FromSlash(name))
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return fmt.Errorf("archive: %w", err)
	}
	return f.Close()
}
