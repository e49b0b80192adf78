package schema

import (
	"encoding/json"
	"strconv"
)

// codec reads and writes the JSON form of T.
type codec[T any] struct {
	dec func(r *reader, v *T)
	enc func(w *writer, v *T)
}

var (
	stringC = codec[string]{
		func(r *reader, v *string) { *v = r.str() },
		func(w *writer, v *string) { w.str(*v) },
	}
	intC = codec[int64]{
		func(r *reader, v *int64) { *v = r.int() },
		func(w *writer, v *int64) { w.int(*v) },
	}
	floatC = codec[float64]{
		func(r *reader, v *float64) { *v = r.float() },
		func(w *writer, v *float64) { w.float(*v) },
	}
	boolC = codec[bool]{
		func(r *reader, v *bool) { *v = r.boolean() },
		func(w *writer, v *bool) { w.boolean(*v) },
	}
	// nameC is a string in which "" stands for null.
	nameC = codec[string]{
		func(r *reader, v *string) {
			if !r.null() {
				*v = r.str()
			}
		},
		func(w *writer, v *string) {
			if *v == "" {
				w.raw("null")
			} else {
				w.str(*v)
			}
		},
	}
	// noneC is the value of as_none; PyTorch 2.1 to 2.5 wrote an empty list.
	noneC = codec[bool]{
		func(r *reader, v *bool) { *v = true; r.skip() },
		func(w *writer, v *bool) { w.raw("true") },
	}
)

// enumC is an integer of the given values.
func enumC[E ~int](name string, values ...E) codec[E] {
	known := map[int64]bool{}
	for _, v := range values {
		known[int64(v)] = true
	}
	return codec[E]{
		func(r *reader, v *E) {
			n := r.int()
			if r.err == nil && !known[n] {
				r.fail("%d is no %s", n, name)
			}
			*v = E(n)
		},
		func(w *writer, v *E) { w.int(int64(*v)) },
	}
}

// listOf is an array. It decodes to an empty slice, not nil.
func listOf[T any](c codec[T]) codec[[]T] {
	return codec[[]T]{
		func(r *reader, v *[]T) {
			if !r.enter('[') {
				return
			}
			out, first := []T{}, true
			for r.more(&first, ']') {
				var x T
				if c.dec(r, &x); r.under(strconv.Itoa(len(out))) {
					return
				}
				out = append(out, x)
			}
			*v = out
		},
		func(w *writer, v *[]T) {
			w.raw("[")
			for i := range *v {
				if i > 0 {
					w.raw(", ")
				}
				c.enc(w, &(*v)[i])
			}
			w.raw("]")
		},
	}
}

// mapOf is an object with arbitrary keys.
func mapOf[V any](c codec[V]) codec[Map[V]] {
	return codec[Map[V]]{
		func(r *reader, v *Map[V]) {
			if !r.enter('{') {
				return
			}
			var out Map[V]
			first := true
			for r.more(&first, '}') {
				at := r.i
				e := Entry[V]{Key: r.str()}
				if r.expect(':') {
					c.dec(r, &e.Value)
				}
				if r.under(e.Key) {
					return
				}
				out = append(out, e)
				if len(out) > 1 && len(out) <= 8 {
					if _, dup := out[:len(out)-1].Get(e.Key); dup {
						r.i = at
						r.fail("the key %q occurs twice", e.Key)
						return
					}
				}
			}
			if len(out) > 8 {
				seen := make(map[string]bool, len(out))
				for i := range out {
					if seen[out[i].Key] {
						r.fail("the key %q occurs twice", out[i].Key)
						return
					}
					seen[out[i].Key] = true
				}
			}
			*v = out
		},
		func(w *writer, v *Map[V]) {
			w.raw("{")
			for i := range *v {
				if i > 0 {
					w.raw(", ")
				}
				w.str((*v)[i].Key)
				w.raw(": ")
				c.enc(w, &(*v)[i].Value)
			}
			w.raw("}")
		},
	}
}

// nullable is a value or null, which is nil.
func nullable[T any](c codec[T]) codec[*T] {
	return codec[*T]{
		func(r *reader, v **T) {
			if !r.null() {
				*v = new(T)
				c.dec(r, *v)
			}
		},
		func(w *writer, v **T) {
			if *v == nil {
				w.raw("null")
			} else {
				c.enc(w, *v)
			}
		},
	}
}

// refTo is c behind a pointer, found only when it is used: the schema is recursive.
func refTo[T any](c *codec[T]) codec[T] {
	return codec[T]{
		func(r *reader, v *T) { c.dec(r, v) },
		func(w *writer, v *T) { c.enc(w, v) },
	}
}

// field is a field of struct S.
type field[S any] struct {
	num      int
	name     string
	required bool
	dec      func(r *reader, s *S)
	enc      func(w *writer, s *S)
	def      func(s *S)
}

// need is a field without default.
func need[S, F any](num int, name string, at func(*S) *F, c codec[F]) field[S] {
	return field[S]{
		num: num, name: name, required: true,
		dec: func(r *reader, s *S) { c.dec(r, at(s)) },
		enc: func(w *writer, s *S) { c.enc(w, at(s)) },
	}
}

// opt is a field whose default is the zero value.
func opt[S, F any](num int, name string, at func(*S) *F, c codec[F]) field[S] {
	f := need(num, name, at, c)
	f.required = false
	return f
}

// optDef is a field with another default.
func optDef[S, F any](num int, name string, at func(*S) *F, c codec[F], def F) field[S] {
	f := opt(num, name, at, c)
	f.def = func(s *S) { *at(s) = def }
	return f
}

// hasUnknown is a pointer to a struct that keeps unknown fields.
type hasUnknown[S any] interface {
	*S
	unknown() *Unknown
}

// structOf is an object with the given fields, written in their order.
func structOf[S any, P hasUnknown[S]](name string, fields ...field[S]) codec[S] {
	describe(name, fields)
	var required uint64
	for i, f := range fields {
		if f.required {
			required |= 1 << i
		}
	}
	find := func(key []byte, hint int) int {
		if hint < len(fields) && fields[hint].name == string(key) {
			return hint
		}
		for i := range fields {
			if fields[i].name == string(key) {
				return i
			}
		}
		return -1
	}
	return codec[S]{
		func(r *reader, s *S) {
			if !r.enter('{') {
				return
			}
			for i := range fields {
				if fields[i].def != nil {
					fields[i].def(s)
				}
			}
			var seen uint64
			hint, first := 0, true
			for r.more(&first, '}') {
				key := r.key()
				if r.err != nil {
					return
				}
				i := find(key, hint)
				if i < 0 {
					name := string(key)
					if keep(r, P(s).unknown(), name); r.under(name) {
						return
					}
					continue
				}
				if seen&(1<<i) != 0 {
					r.fail("the field %q occurs twice", key)
					return
				}
				seen |= 1 << i
				hint = i + 1
				if fields[i].dec(r, s); r.under(fields[i].name) {
					return
				}
			}
			if missing := required &^ seen; missing != 0 && r.err == nil {
				for i := range fields {
					if missing&(1<<i) != 0 {
						r.fail("%s has no field %q", name, fields[i].name)
						return
					}
				}
			}
		},
		func(w *writer, s *S) {
			w.raw("{")
			for i := range fields {
				if i > 0 {
					w.raw(", ")
				}
				w.raw(`"`)
				w.raw(fields[i].name)
				w.raw(`": `)
				fields[i].enc(w, s)
			}
			for _, u := range P(s).unknown().Fields() {
				w.raw(", ")
				w.str(u.Key)
				w.raw(": ")
				w.b = append(w.b, u.Value...)
			}
			w.raw("}")
		},
	}
}

// keep stores the text of a field that the schema does not know.
func keep(r *reader, u *Unknown, name string) {
	t := r.skip()
	if r.err != nil {
		return
	}
	if r.strict {
		r.fail("unknown field")
		return
	}
	if u.list == nil {
		u.list = new(Map[json.RawMessage])
	}
	*u.list = append(*u.list, Entry[json.RawMessage]{name, append(json.RawMessage(nil), t...)})
}

// variant is one tag of union U.
type variant[U any] struct {
	num int
	tag string
	dec func(r *reader, u *U)
	// enc writes the value if u has this tag.
	enc func(w *writer, u *U) bool
}

// tagged is a variant whose value lies in a field of U when is reports so.
func tagged[U, F any](num int, tag string, c codec[F], set func(*U, F), get func(*U) (F, bool)) variant[U] {
	return variant[U]{num, tag,
		func(r *reader, u *U) {
			var x F
			c.dec(r, &x)
			set(u, x)
		},
		func(w *writer, u *U) bool {
			x, ok := get(u)
			if ok {
				w.raw(`{"` + tag + `": `)
				c.enc(w, &x)
				w.raw("}")
			}
			return ok
		},
	}
}

// unionOf is an object with exactly one member that is not null.
func unionOf[U any](name string, variants ...variant[U]) codec[U] {
	describeUnion(name, variants)
	return codec[U]{
		func(r *reader, u *U) {
			if !r.enter('{') {
				return
			}
			found, first := "", true
			for r.more(&first, '}') {
				key := r.key()
				if r.err != nil {
					return
				}
				i := 0
				for i < len(variants) && variants[i].tag != string(key) {
					i++
				}
				if i == len(variants) {
					r.fail("%s has no tag %q", name, key)
					return
				}
				if r.null() { // PyTorch 2.1 and 2.2 wrote all tags
					continue
				}
				if found != "" {
					r.fail("%s has the two tags %q and %q", name, found, key)
					return
				}
				found = variants[i].tag
				if variants[i].dec(r, u); r.under(found) {
					return
				}
			}
			if found == "" && r.err == nil {
				r.fail("%s has no tag", name)
			}
		},
		func(w *writer, u *U) {
			for i := range variants {
				if variants[i].enc(w, u) {
					return
				}
			}
			w.fail(name)
		},
	}
}
