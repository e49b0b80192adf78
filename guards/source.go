package guards

import (
	"fmt"
	"strconv"
	"strings"
)

// inputPaths maps the text that follows L in a source to an input: its path, the form that guards use for *args (args[0] for
// args_0) and for members of **kwargs, and the place among all leaves that strict export writes.
func inputPaths(inputs []Input) map[string]int {
	paths := make(map[string]int, 4*len(inputs))
	for i, in := range inputs {
		root, rest := splitRoot(in.Name)
		if j := strings.LastIndexByte(root, '_'); j > 0 {
			if _, err := strconv.Atoi(root[j+1:]); err == nil {
				paths[root[:j]+"["+root[j+1:]+"]"+rest] = i
			}
		}
		paths["*['"+root+"']"+rest] = i
		paths["flat_args["+strconv.Itoa(i)+"]"] = i
	}
	for i, in := range inputs {
		root, rest := splitRoot(in.Name)
		paths[root+rest] = i
	}
	return paths
}

// splitRoot parts a parameter's name from the steps below it, which it normalises.
func splitRoot(name string) (root, rest string) {
	j := strings.IndexAny(name, "[.")
	if j < 0 {
		return name, ""
	}
	root, tail := name[:j], name[j:]
	for tail != "" && (tail[0] == '[' || tail[0] == '.') {
		step, n := nextStep(tail)
		if n == 0 {
			break
		}
		rest += step
		tail = tail[n:]
	}
	return root, rest + tail
}

// source is a leaf of a guard expression: a size, stride, offset or number of an input.
type source struct {
	input int
	what  byte // 's' size, 't' stride, 'o' offset, 'v' value
	dim   int
}

// resolve reads what follows the L of a source: L['x'][0].a.size()[1]. It gives the source, the length of the input's path
// and the length of the whole.
func resolve(paths map[string]int, rest string) (src source, path, used int, err error) {
	fail := func(format string, args ...any) (source, int, int, error) {
		return source{}, 0, 0, fmt.Errorf(format, args...)
	}
	// The path reaches to the longest prefix of steps that names an input.
	pos, name := 0, ""
	first := true
	for pos < len(rest) && (rest[pos] == '[' || (rest[pos] == '.' && !method(rest[pos:]))) {
		step, n := nextStep(rest[pos:])
		if n == 0 {
			return fail("malformed path %s", rest)
		}
		if first {
			step = strings.Trim(step, "[]'\"")
			first = false
		}
		name += step
		pos += n
	}
	i, ok := paths[name]
	if !ok {
		if j := strings.IndexByte(name, '['); j > 0 {
			i, ok = paths["*"+name[j:]]
		}
	}
	if !ok {
		return fail("no input is called %s", name)
	}
	tail := rest[pos:]
	for prefix, what := range map[string]byte{".size()[": 's', ".stride()[": 't', ".shape[": 's'} {
		if t, ok := strings.CutPrefix(tail, prefix); ok {
			num, _, found := strings.Cut(t, "]")
			d, err := strconv.Atoi(num)
			if !found || err != nil || d < 0 {
				return fail("malformed dimension in %s", tail)
			}
			return source{i, what, d}, pos, pos + len(prefix) + len(num) + 1, nil
		}
	}
	if strings.HasPrefix(tail, ".storage_offset()") {
		return source{i, 'o', 0}, pos, pos + len(".storage_offset()"), nil
	}
	return source{i, 'v', 0}, pos, pos, nil
}

func method(s string) bool {
	return strings.HasPrefix(s, ".size()") || strings.HasPrefix(s, ".stride()") || strings.HasPrefix(s, ".storage_offset()") || strings.HasPrefix(s, ".shape[")
}

// nextStep reads [0], ['k'] or .name; double quotes are normalised.
func nextStep(s string) (string, int) {
	if s[0] == '.' {
		n := 1
		for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z') {
			n++
		}
		return s[:n], n
	}
	if len(s) > 1 && (s[1] == '\'' || s[1] == '"') {
		end := strings.Index(s[2:], string(s[1])+"]")
		if end < 0 {
			return "", 0
		}
		return "['" + s[2:2+end] + "']", end + 4
	}
	end := strings.IndexByte(s, ']')
	return s[:end+1], end + 1
}
