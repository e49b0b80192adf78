package tensorio

import (
	"bytes"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

func TestPTRoundTrip(t *testing.T) {
	x, _ := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	y, _ := x.AsStrided([]int64{3, 2}, []int64{1, 3}, 0)
	h, _ := tensor.FromBits(tensor.Uint16, []uint16{1, 65535}, 2)
	in := []any{&Dict{Keys: []any{"a", int64(3)}, Values: []any{x, Tuple{y, nil, true, 2.5, "s", int64(-1) << 40}}}, h, complex(1, -2)}
	var b bytes.Buffer
	if err := WritePT(&b, in); err != nil {
		t.Fatal(err)
	}
	out, err := ParsePT(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	l := out.([]any)
	d := l[0].(*Dict)
	a, _ := d.Get("a")
	tup := d.Values[1].(Tuple)
	if a.(*tensor.Tensor).Storage() != tup[0].(*tensor.Tensor).Storage() {
		t.Error("tensors that shared a storage no longer do")
	}
	if got := tensor.Data[float32](tup[0].(*tensor.Tensor)); got[4] != 5 || tup[0].(*tensor.Tensor).Strides()[1] != 3 {
		t.Errorf("view came back as %v", got)
	}
	if tup[2] != true || tup[3] != 2.5 || tup[4] != "s" || tup[5] != int64(-1)<<40 || l[2] != complex(1, -2) {
		t.Errorf("numbers came back as %v %v", tup[2:], l[2])
	}
	if got := tensor.Contiguous[uint16](l[1].(*tensor.Tensor)); got[1] != 65535 {
		t.Errorf("uint16 came back as %v", got)
	}
}

func TestPTRefusesGarbage(t *testing.T) {
	x, _ := tensor.FromSlice([]float32{1, 2, 3}, 3)
	var b bytes.Buffer
	if err := WritePT(&b, []any{x}); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	for i := 0; i < len(good); i++ {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x55
		ParsePT(bad) // must not panic
		ParsePT(good[:i])
	}
	if _, err := ParsePT([]byte("hello")); err == nil {
		t.Error("text was read as a torch.save file")
	}
}

func TestDictTensors(t *testing.T) {
	x := tensor.New(tensor.Float32, 2)
	m, err := (&Dict{[]any{"a"}, []any{x}}).Tensors()
	if err != nil || len(m) != 1 || m["a"] != x {
		t.Errorf("%v, %v", m, err)
	}
	for _, d := range []*Dict{{[]any{int64(1)}, []any{x}}, {[]any{"a"}, []any{1.0}}} {
		if m, err := d.Tensors(); err == nil {
			t.Errorf("%v gives %v", d, m)
		}
	}
}
