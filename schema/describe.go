package schema

import "sort"

// TypeInfo describes a struct or union of the schema.
type TypeInfo struct {
	Name   string
	Union  bool
	Fields []FieldInfo
}

// FieldInfo is a field of a struct or a tag of a union.
type FieldInfo struct {
	Number   int // as in the schema's Thrift form
	Name     string
	Required bool // a struct's field without default
}

var described []TypeInfo // filled while the tables are built, constant afterwards

// Types lists the structs and unions of the schema by name.
func Types() []TypeInfo {
	out := append([]TypeInfo(nil), described...)
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func describe[S any](name string, fields []field[S]) {
	t := TypeInfo{Name: name}
	for _, f := range fields {
		t.Fields = append(t.Fields, FieldInfo{f.num, f.name, f.required})
	}
	described = append(described, t)
}

func describeUnion[U any](name string, variants []variant[U]) {
	t := TypeInfo{Name: name, Union: true}
	for _, v := range variants {
		t.Fields = append(t.Fields, FieldInfo{v.num, v.tag, false})
	}
	described = append(described, t)
}
