package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write what the commands print into testdata/*.script")

// TestScripts runs testdata/*.script. A line "$ pt2 ..." is a command; what follows is all that it prints, then "[exit N]" where N
// is not 0. A line "..." stands for any lines. $DATA is the repository's testdata, $EXAMPLES its examples, $TMP a fresh folder.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.script")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			vars := strings.NewReplacer("$DATA", "../../testdata", "$EXAMPLES", "../../examples", "$TMP", t.TempDir())
			names := strings.NewReplacer(vars.Replace("$TMP"), "$TMP", "../../testdata", "$DATA", "../../examples", "$EXAMPLES")
			var written strings.Builder
			for _, block := range blocks(string(b)) {
				got := names.Replace(execute(vars.Replace(block.command)))
				if !matches(strings.Split(got, "\n"), strings.Split(block.want, "\n")) {
					t.Errorf("%s\n got %s\nwant %s", block.command, got, block.want)
				} else {
					got = block.want
				}
				written.WriteString(block.before + "$ " + block.command + "\n" + got)
			}
			if *update {
				if err := os.WriteFile(file, []byte(written.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type block struct{ before, command, want string }

// blocks cuts a script. Comments, which stand before a command, begin with #.
func blocks(text string) (out []block) {
	before := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		switch cmd, ok := strings.CutPrefix(line, "$ "); {
		case ok:
			out = append(out, block{before: before, command: strings.TrimSuffix(cmd, "\n")})
			before = ""
		case strings.HasPrefix(line, "# ") && (len(out) == 0 || before != "" || strings.HasSuffix(line, ".\n")):
			before += line
		case len(out) > 0 && before == "":
			out[len(out)-1].want += line
		}
	}
	return out
}

// execute runs a command and gives what it prints with its exit code.
func execute(command string) string {
	var out strings.Builder
	code := 0
	switch args := strings.Fields(command); args[0] {
	case "pt2":
		code = run(args[1:], &out, &out)
	case "cat":
		b, err := os.ReadFile(args[1])
		fmt.Fprint(&out, string(b))
		if err != nil {
			code = 1
		}
	case "write": // write FILE TEXT: a file with a line
		if err := os.WriteFile(args[1], []byte(strings.Join(args[2:], " ")+"\n"), 0o644); err != nil {
			code = 1
		}
	}
	if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
		out.WriteByte('\n')
	}
	if code != 0 {
		fmt.Fprintf(&out, "[exit %d]\n", code)
	}
	return out.String()
}

func matches(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matches(got[i:], want[1:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && got[0] == want[0] && matches(got[1:], want[1:])
}

// TestHelp: every command says what it does with an example, every flag what it means, and the exit codes are told.
func TestHelp(t *testing.T) {
	root := newRoot()
	if !strings.Contains(root.Long, "Exit codes:") || root.Example == "" {
		t.Errorf("pt2 --help: %s %s", root.Long, root.Example)
	}
	for _, c := range root.Commands() {
		if c.Example == "" || c.Short == "" || !strings.Contains(c.Example, "pt2 "+c.Name()) {
			t.Errorf("%s has no example", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s is not explained", c.CommandPath(), f.Name)
			}
		})
		var out strings.Builder
		if code := run([]string{c.Name(), "--help"}, &out, &out); code != 0 || !strings.Contains(out.String(), c.Example) {
			t.Errorf("%s --help: exit %d, %s", c.CommandPath(), code, out.String())
		}
	}
}
