package tensor

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/x448/float16"
)

type score float32

func TestFromGo(t *testing.T) {
	for _, c := range []struct {
		v     any
		dt    DType
		sizes []int64
		want  []float64
	}{
		{2.5, Float32, []int64{}, []float64{2.5}},
		{int8(-3), Int64, []int64{}, []float64{-3}},
		{7, Invalid, []int64{}, []float64{7}},
		{true, Bool, []int64{}, []float64{1}},
		{[]float32{1, 2, 3}, Float32, []int64{3}, []float64{1, 2, 3}},
		{[]score{1, 2}, Float32, []int64{2}, []float64{1, 2}},
		{[]float64{0.5, 1e300}, Float32, []int64{2}, []float64{0.5, math.Inf(1)}},
		{[]float32{1, 65520}, Float16, []int64{2}, []float64{1, math.Inf(1)}}, // ties to even, past the largest half
		{[]float32{1.00390625}, BFloat16, []int64{1}, []float64{1}},
		{[]int{1, -2}, Float64, []int64{2}, []float64{1, -2}},
		{[]int{1, 255}, Uint8, []int64{2}, []float64{1, 255}},
		{[]uint64{1, 2}, Int32, []int64{2}, []float64{1, 2}},
		{[2][3]int32{{1, 2, 3}, {4, 5, 6}}, Int32, []int64{2, 3}, []float64{1, 2, 3, 4, 5, 6}},
		{[][]float32{{1, 2}, {3, 4}, {5, 6}}, Float32, []int64{3, 2}, []float64{1, 2, 3, 4, 5, 6}},
		{[][][2]float64{{{1, 2}}, {{3, 4}}}, Float32, []int64{2, 1, 2}, []float64{1, 2, 3, 4}},
		{[][]float32{}, Float32, []int64{0, 0}, []float64{}},
		{[][]float32{{}, {}}, Float32, []int64{2, 0}, []float64{}},
		{[]bool{true, false}, Bool, []int64{2}, []float64{1, 0}},
		{[]float16.Float16{float16.Fromfloat32(1.5)}, Float16, []int64{1}, []float64{1.5}},
		{[]uint16{3}, Float16, []int64{1}, []float64{3}}, // a number, not bits
	} {
		x, err := FromGo(c.v, c.dt)
		if err != nil {
			t.Errorf("%T %v: %v", c.v, c.dt, err)
			continue
		}
		got, _ := x.Floats()
		if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(x.Sizes(), c.sizes) || c.dt != Invalid && x.DType() != c.dt {
			t.Errorf("%T %v: %v %v %v, want %v %v", c.v, c.dt, x.DType(), x.Sizes(), got, c.sizes, c.want)
		}
	}
	c, err := FromGo([]float32{1, 2}, Complex64)
	if err != nil || Data[complex64](c)[1] != 2 {
		t.Errorf("complex: %v %v", c, err)
	}
}

func TestFromGoSharesMemory(t *testing.T) {
	s := []float32{1, 2}
	x, err := FromGo(s, Float32)
	if err != nil {
		t.Fatal(err)
	}
	s[1] = 7
	if x.Float(1) != 7 {
		t.Error("the slice was copied")
	}
	b := []bool{false}
	if x, err = FromGo(b, Bool); err != nil {
		t.Fatal(err)
	}
	if b[0] = true; x.Float(0) != 1 {
		t.Error("the bools were copied")
	}
}

func TestFromGoRefuses(t *testing.T) {
	for _, c := range []struct {
		v  any
		dt DType
	}{
		{nil, Float32}, {"text", Float32}, {[]string{"a"}, Float32}, {map[int]int{}, Float32}, {&[]float32{}, Float32},
		{[][]float32{{1}, {1, 2}}, Float32}, {300, Uint8}, {-1, Uint8}, {-1, Uint64}, {uint64(1) << 63, Int64},
		{1.5, Int64}, {true, Float32}, {1, Bool}, {complex(1, 2), Float32}, {1.5, Float8E5M2}, {[]int64{1 << 31}, Int32},
	} {
		if x, err := FromGo(c.v, c.dt); !errors.Is(err, ErrConvert) {
			t.Errorf("%T into %v: %v %v", c.v, c.dt, x, err)
		}
	}
}

func TestDecode(t *testing.T) {
	x, _ := FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	tr, _ := x.AsStrided([]int64{3, 2}, []int64{1, 3}, 0)
	n, _ := FromSlice([]int64{1, -2, math.MaxInt64}, 3)
	half, _ := FromGo([]float64{1.5}, Float16)
	yes, _ := FromGo([]bool{true, false}, Bool)
	big, _ := FromSlice([]uint64{math.MaxUint64}, 1)
	empty := New(Float32, 2, 0)
	for _, c := range []struct {
		t    *Tensor
		want any
	}{
		{x, []float32{1, 2, 3, 4, 5, 6}},
		{x, []score{1, 2, 3, 4, 5, 6}},
		{x, [][]float32{{1, 2, 3}, {4, 5, 6}}},
		{x, [][]score{{1, 2, 3}, {4, 5, 6}}},
		{x, [2][3]float64{{1, 2, 3}, {4, 5, 6}}},
		{x, [][3]float64{{1, 2, 3}, {4, 5, 6}}},
		{x, []complex128{1, 2, 3, 4, 5, 6}},
		{tr, [][]float32{{1, 4}, {2, 5}, {3, 6}}},
		{tr, []float64{1, 4, 2, 5, 3, 6}},
		{n, []int{1, -2, math.MaxInt64}},
		{half, float32(1.5)},
		{half, []float16.Float16{float16.Fromfloat32(1.5)}},
		{half, [1]float32{1.5}},
		{yes, []bool{true, false}},
		{big, uint64(math.MaxUint64)},
		{empty, []float32{}},
		{empty, [][]float32{{}, {}}},
		{x.WithBits(false, true), []float32{-1, -2, -3, -4, -5, -6}},
	} {
		p := reflect.New(reflect.TypeOf(c.want))
		if err := c.t.Decode(p.Interface()); err != nil || !reflect.DeepEqual(p.Elem().Interface(), c.want) {
			t.Errorf("%T: %v %v, want %v", c.want, p.Elem(), err, c.want)
		}
	}
	var s []float32
	if x.Decode(&s); &s[0] != &Data[float32](x)[0] || cap(s) != 6 {
		t.Error("the elements were copied")
	}
}

func TestDecodeRefuses(t *testing.T) {
	x, _ := FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	n, _ := FromSlice([]int64{300, -1, 1<<53 + 1}, 3)
	var f float32
	for _, c := range []struct {
		t   *Tensor
		dst any
	}{
		{x, nil}, {x, f}, {x, (*float32)(nil)}, {x, &f}, {x, new(string)}, {x, new([][][]float32)}, {x, new([5]float32)},
		{x, new([3][2]float32)}, {x, new([2][2]float32)}, {x, new([]int)}, {x, new([]bool)}, {n, new([]int8)},
		{n, new([]uint)}, {n, new([]float64)}, {n, new([]bool)},
	} {
		if err := c.t.Decode(c.dst); !errors.Is(err, ErrConvert) {
			t.Errorf("%v into %T: %v", c.t.Sizes(), c.dst, err)
		}
	}
}
