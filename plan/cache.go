package plan

import (
	"fmt"
	"sync"

	"github.com/pt2go/pt2/aten"
)

// Cache keeps what plans make of constant weights, so that all plans and runners of a module share it. It belongs to one set of
// weights. It is safe for concurrent use.
type Cache struct {
	mu sync.Mutex
	m  map[string]*cached
}

type cached struct {
	once sync.Once
	v    any
	keep []*aten.Value // what the key names by address
}

// get gives what f makes of constants, which it calls only the first time. kind says what is made.
func (c *Cache) get(kind string, f func() any, constants ...*aten.Value) any {
	if c == nil {
		return f()
	}
	key := kind
	for _, v := range constants {
		key += "|" + keyOf(v)
	}
	c.mu.Lock()
	if c.m == nil {
		c.m = map[string]*cached{}
	}
	e := c.m[key]
	if e == nil {
		e = &cached{keep: constants}
		c.m[key] = e
	}
	c.mu.Unlock()
	e.once.Do(func() { e.v = f() })
	return e.v
}

// keyOf names a constant by the memory that it looks at; "" for no value.
func keyOf(v *aten.Value) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%p+%d %v%v%v", v.T.Storage(), v.T.Offset(), v.DType, v.T.Sizes(), v.T.Strides())
}
