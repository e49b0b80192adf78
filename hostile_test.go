package pt2_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/conformance"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/loader"
)

// spent bounds what one damaged file may allocate: some of it for the file, some for what its program computes.
const spent = 1 << 30

// attempt loads an archive, with or without checksums, and makes its first recorded call.
func attempt(b []byte, checksums bool, inputs []any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	c, err := loader.OpenBytes(b, loader.Options{Archive: archive.Options{SkipChecksums: !checksums}})
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.Program("")
	if err != nil {
		return err
	}
	_ = p.String()
	m, err := interp.New(p, interp.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = m.Run(ctx, conformance.CloneInputs(inputs)...)
	return err
}

// TestDamagedArchives changes and cuts real archives at 200 places each, with checksums and without, which lets the damage
// through to everything behind the container. Nothing may panic, hang, or allocate without bound.
func TestDamagedArchives(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of loads")
	}
	for _, dir := range []string{pnet, oldCase(t, "v2.15.0-cond"), oldCase(t, "v2.15.0-tree"), oldCase(t, "v2.15.0-count"),
		oldCase(t, "v2.15.0-symar"), oldCase(t, "v2.1.2-dyn"), oldCase(t, "v2.5.1-block")} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			good, err := os.ReadFile(dir + "/model.pt2")
			if err != nil {
				t.Fatal(err)
			}
			inputs := calls(t, dir)[0].Inputs
			if err := attempt(good, true, inputs); err != nil {
				t.Fatal(err)
			}
			const places = 200
			for i := range places {
				at := i*len(good)/places + i%7
				flipped := append([]byte(nil), good...)
				flipped[at] ^= 1 << (i % 8)
				digit := append([]byte(nil), good...)
				if at = nextDigit(digit, at); at >= 0 {
					digit[at] = "0123456789"[(int(digit[at]-'0')+1+i%9)%10]
				}
				check(t, fmt.Sprint("flipped at ", i), flipped, true, inputs)
				check(t, fmt.Sprint("flipped without checksums at ", i), flipped, false, inputs)
				check(t, fmt.Sprint("another digit at ", i), digit, false, inputs)
				check(t, fmt.Sprint("cut at ", i), good[:i*len(good)/places], false, inputs)
			}
		})
	}
}

// nextDigit finds a decimal digit from a place on, -1 if there is none.
func nextDigit(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		if b[i] >= '0' && b[i] <= '9' {
			return i
		}
	}
	return -1
}

func check(t *testing.T, what string, b []byte, checksums bool, inputs []any) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := attempt(b, checksums, inputs)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > spent {
		t.Errorf("%s: %d MiB were allocated (%v)", what, n>>20, err)
	}
	if err != nil && (strings.Contains(err.Error(), "panic") || strings.Contains(err.Error(), "internal error")) {
		t.Errorf("%s: %v", what, err)
	}
}
