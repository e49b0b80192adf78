package tracer

import (
	"fmt"
	"reflect"

	"github.com/pt2go/pt2/export"
)

// Strict makes [Export] refuse models with hidden state, as strict=True of torch.export.export: a Forward that changes fields of the model
// or of a sub-module, or that does other things when it is called a second time. Without it, such changes happen once, while the model
// is exported, and are no part of the program.
func Strict() Option {
	return func(e *exporter) error {
		e.strict = true
		return nil
	}
}

// snapshot keeps the fields of all modules.
func (t *tree) snapshot() map[string]string {
	out := map[string]string{}
	for i := range t.entries {
		out[t.entries[i].fqn+"'s tensor"] = fmt.Sprintf("%p", t.entries[i].tensor())
	}
	for _, c := range t.modules {
		v := reflect.ValueOf(c.m)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			continue
		}
		for i := range v.NumField() {
			if text, ok := plain(v.Field(i), 0); ok {
				out[join(c.name, v.Type().Field(i).Name)] = text
			}
		}
	}
	return out
}

// plain describes a field by what assignments change: numbers, strings, and which memory pointers, slices and maps refer to.
func plain(v reflect.Value, depth int) (string, bool) {
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.String:
		return fmt.Sprintf("%v", v), true
	case reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return fmt.Sprintf("%v %#x", v.Type(), v.Pointer()), true
	case reflect.Map:
		return fmt.Sprintf("%v %#x of %d", v.Type(), v.Pointer(), v.Len()), true
	case reflect.Interface:
		if v.IsNil() {
			return "nil", true
		}
		text, ok := plain(v.Elem(), depth)
		return text, ok
	case reflect.Slice, reflect.Array:
		text := fmt.Sprintf("%d:", v.Len())
		for i := range v.Len() {
			part, ok := plain(v.Index(i), depth+1)
			if !ok {
				return "", false
			}
			text += part + ","
		}
		return text, true
	case reflect.Struct:
		if depth > 8 {
			return "", false
		}
		text := ""
		for i := range v.NumField() {
			part, ok := plain(v.Field(i), depth+1)
			if !ok {
				return "", false
			}
			text += part + ";"
		}
		return text, true
	}
	return "", false
}

// changed names a field that differs, "" if there is none.
func (t *tree) changed(before map[string]string) string {
	after := t.snapshot()
	for i := range t.entries {
		if name := t.entries[i].fqn + "'s tensor"; before[name] != after[name] {
			return name
		}
	}
	for _, c := range t.modules {
		v := reflect.Indirect(reflect.ValueOf(c.m))
		if v.Kind() != reflect.Struct {
			continue
		}
		for i := range v.NumField() {
			name := join(c.name, v.Type().Field(i).Name)
			if before[name] != after[name] {
				return fmt.Sprintf("field %s of %T", name, c.m)
			}
		}
	}
	return ""
}

// run traces once, or strictly, twice: the model must neither change nor do other things.
func (e *exporter) run(env *env) (*export.Program, error) {
	if !e.strict {
		return e.trace(env)
	}
	before := e.tree.snapshot()
	p, err := e.trace(env)
	if err != nil {
		return nil, err
	}
	if f := e.tree.changed(before); f != "" {
		return nil, invalid("Forward changed %s while the model was exported: a program keeps no fields; make it a *tracer.Buffer that an operator writes, or leave Strict out", f)
	}
	again, err := e.trace(newEnv(e.symbols))
	if err != nil {
		return nil, err
	}
	if !p.Graph().Equivalent(again.Graph()) {
		return nil, invalid("Forward does other things when it is called a second time: it depends on state outside of the model, or on the order of a map")
	}
	return p, nil
}
