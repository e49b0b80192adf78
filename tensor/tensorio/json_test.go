package tensorio

import (
	"testing"

	"github.com/pt2go/pt2/tensor"
)

func TestJSONKeepsIntegersExact(t *testing.T) {
	const big = 1<<53 + 1
	v, err := ParseJSON([]byte(`[[9007199254740993, -1], {"dtype": "uint64", "shape": [1], "data": [18446744073709551615]}, [[0.5], [2]], 3, null]`))
	if err != nil {
		t.Fatal(err)
	}
	l := v.([]any)
	if got := tensor.Contiguous[int64](l[0].(*tensor.Tensor)); got[0] != big {
		t.Errorf("got %d, want %d", got[0], int64(big))
	}
	if got := tensor.Contiguous[uint64](l[1].(*tensor.Tensor)); got[0] != 1<<64-1 {
		t.Errorf("got %d", got[0])
	}
	if x := l[2].(*tensor.Tensor); x.DType() != tensor.Float32 || x.Dim() != 2 || x.Float(1) != 2 {
		t.Errorf("got %v", x)
	}
	b, err := EncodeJSON(l)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ParseJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Contiguous[int64](w.([]any)[0].(*tensor.Tensor)); got[0] != big {
		t.Errorf("round trip gives %d", got[0])
	}
}
