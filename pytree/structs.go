package pytree

import (
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// field is an exported field of a Go struct under the name that a program uses.
type field struct {
	index  int
	name   string // of the tag pt2:"name", else the Go name
	tagged bool
}

var fieldCache sync.Map // reflect.Type -> []field

// fieldsOf lists the fields of a struct type in order; those with the tag pt2:"-" are left out.
func fieldsOf(t reflect.Type) []field {
	if f, ok := fieldCache.Load(t); ok {
		return f.([]field)
	}
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("pt2")
		if !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag, tagged = f.Name, false
		}
		out = append(out, field{i, tag, tagged})
	}
	fieldCache.Store(t, out)
	return out
}

// findField finds the field for a name: by its tag, else by its Go name written in Python's way (InputIDs for input_ids).
func findField(fields []field, name string) int {
	for i, f := range fields {
		if f.name == name {
			return i
		}
	}
	for i, f := range fields {
		if !f.tagged && (snake(f.name) == name || strings.EqualFold(f.name, strings.ReplaceAll(name, "_", ""))) {
			return i
		}
	}
	return -1
}

// snake writes InputIDs as input_ids.
func snake(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1]) && runes[i+1] != 's'
			if !unicode.IsUpper(runes[i-1]) || next {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// isStruct reports a struct that is a container here, and not one of this package's own values.
func isStruct(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && v.Type() != typeOfNamedTuple && v.Type() != typeOfNode
}

var (
	typeOfNamedTuple  = reflect.TypeFor[NamedTuple]()
	typeOfNode        = reflect.TypeFor[Node]()
	typeOfDict        = reflect.TypeFor[Dict]()
	typeOfOrderedDict = reflect.TypeFor[OrderedDict]()
	typeOfTuple       = reflect.TypeFor[Tuple]()
	typeOfList        = reflect.TypeFor[List]()
)
