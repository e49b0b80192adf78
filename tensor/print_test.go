package tensor

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
)

// testdata/print.jsonl has tensors as PyTorch prints them; print.py beside it made it.
func TestPrintedAsInPyTorch(t *testing.T) {
	f, err := os.Open("testdata/print.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	n := 0
	for ; sc.Scan(); n++ {
		var row struct {
			DType  string
			Sizes  []int64
			Values []string
			Text   string
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		dt, err := ParseDType(row.DType)
		if err != nil {
			t.Fatal(err)
		}
		x := New(dt, row.Sizes...)
		for i, v := range row.Values {
			setText(t, x, i, v)
		}
		if got := x.String(); got != row.Text {
			t.Errorf("%s %v\n got %s\nwant %s", row.DType, row.Sizes, got, row.Text)
		}
	}
	if n < 60 {
		t.Errorf("only %d rows", n)
	}
}

func setText(t *testing.T, x *Tensor, i int, v string) {
	t.Helper()
	switch v {
	case "True", "False":
		Data[uint8](x)[i] = map[string]uint8{"True": 1}[v]
		return
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && x.DType() == Int64 {
		Data[int64](x)[i] = n
		return
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		t.Fatal(err)
	}
	switch x.DType() {
	case Complex64:
		Data[float32](&Tensor{storage: x.storage, dtype: Float32})[i] = float32(f)
	case Complex128:
		Data[float64](&Tensor{storage: x.storage, dtype: Float64})[i] = f
	case Float8E5M2:
		for b, w := range F8Table(Float8E5M2) {
			if float64(w) == f {
				Data[uint8](x)[i] = uint8(b)
			}
		}
	default:
		if err := x.SetFloat(int64(i), f); err != nil {
			t.Fatal(err)
		}
	}
}

// Views print their elements in order, whatever the strides; lazy bits count.
func TestPrintedViews(t *testing.T) {
	x, _ := FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	tr, _ := x.AsStrided([]int64{2, 2}, []int64{1, 2}, 0)
	for want, v := range map[string]*Tensor{"tensor([[1., 3.],\n        [2., 4.]])": tr, "tensor([[-1., -2.],\n        [-3., -4.]])": x.WithBits(false, true)} {
		if got := v.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestViewBounds(t *testing.T) {
	st := NewStorage(40) // ten float32
	for _, c := range []struct {
		sizes, strides []int64
		offset         int64
		ok             bool
	}{
		{[]int64{10}, []int64{1}, 0, true}, {[]int64{10}, []int64{1}, 1, false}, {[]int64{5}, []int64{2}, 1, true}, {[]int64{5}, []int64{2}, 2, false},
		{[]int64{2, 5}, []int64{5, 1}, 0, true}, {[]int64{3, 5}, []int64{5, 1}, 0, false}, {[]int64{100, 10}, []int64{0, 1}, 0, true},
		{[]int64{0}, []int64{1}, 10, true}, {[]int64{0}, []int64{1}, 1 << 40, true}, {nil, nil, 9, true}, {nil, nil, 10, false}, {nil, nil, -1, false},
		{[]int64{1}, []int64{math.MaxInt64}, 0, true}, {[]int64{2}, []int64{math.MaxInt64}, 0, false}, {[]int64{2}, []int64{-1}, 5, false},
		{[]int64{-1}, []int64{1}, 0, false}, {[]int64{1 << 40, 1 << 40}, []int64{0, 0}, 0, false}, {[]int64{1 << 32, 1 << 32}, []int64{1 << 32, 1 << 32}, 0, false},
		{[]int64{2}, []int64{1, 1}, 0, false},
	} {
		v, err := View(st, Float32, c.sizes, c.strides, c.offset)
		if (err == nil) != c.ok {
			t.Errorf("%v %v %d: %v", c.sizes, c.strides, c.offset, err)
		}
		if err == nil && v.Numel() > 0 {
			_ = v.String()
		}
	}
	if _, err := View(st, Invalid, nil, nil, 0); err == nil {
		t.Error("a view without a dtype")
	}
}
