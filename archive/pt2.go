package archive

import (
	"fmt"
	"strconv"
	"strings"
)

// IsPT2 reports the archive_format record that marks a PT2 archive of PyTorch 2.8 and later.
func (r *Reader) IsPT2() bool {
	s, err := r.ReadString(FormatPath)
	return err == nil && strings.TrimSpace(s) == FormatValue
}

// Version is the archive version; a missing record counts as 0.
func (r *Reader) Version() (string, error) {
	if !r.Has(VersionPath) {
		return "0", nil
	}
	s, err := r.ReadString(VersionPath)
	return strings.TrimSpace(s), err
}

// ArchiveVersion is Version as a number: PT2ArchiveReader.archive_version.
func (r *Reader) ArchiveVersion() (int, error) {
	s, err := r.Version()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, &FormatError{VersionPath, r.byName[VersionPath].Offset, fmt.Sprintf("version %q is no number", s), ErrFormat}
	}
	return n, nil
}

// IsPT2Package reports whether the file at path is a PT2 archive (torch.export.pt2_archive's is_pt2_package). It is false for
// whatever cannot be read.
func IsPT2Package(path string) bool {
	r, err := Open(path, Options{})
	if err != nil {
		return false
	}
	defer r.Close()
	return r.IsPT2()
}

// IsPT2PackageBytes is [IsPT2Package] for an archive in memory.
func IsPT2PackageBytes(b []byte) bool {
	r, err := NewBytes(b, Options{})
	return err == nil && r.IsPT2()
}
