// Package pickle reads and writes the pickles inside torch.save files. Reading is restricted: a pickle is a program, and this
// reader knows only the few classes that build tensors and containers; nothing else is resolved and nothing is executed. The
// stream is checked before it runs, so that lengths it claims cost no memory the file does not justify.
package pickle

import "fmt"

// Dict is a Python dict or OrderedDict, in order.
type Dict struct {
	Keys, Values []any
}

// Get finds a string key.
func (d *Dict) Get(key string) (any, bool) {
	for i, k := range d.Keys {
		if k == key {
			return d.Values[i], true
		}
	}
	return nil, false
}

// List is a Python list.
type List []any

// Tuple is a Python tuple or torch.Size.
type Tuple []any

// Set is a Python set or frozenset, in the order of the file.
type Set []any

// DType is a torch dtype by name ("uint16").
type DType string

// Device is a torch.device.
type Device string

// StorageRef names a storage of the file.
type StorageRef struct {
	Key      string
	DType    string // of the storage's elements; "" for an untyped storage, which counts bytes
	Location string // a device, such as "cpu"
	Numel    int64
}

// TensorRef describes a tensor over a storage; offset, sizes and strides count elements of DType.
type TensorRef struct {
	Storage      StorageRef
	DType        string
	Offset       int64
	Size, Stride []int64
	RequiresGrad bool
	Parameter    bool
	Conj, Neg    bool // the elements stand for their conjugates, for their negatives
}

// UnsupportedClassError is a class that a pickle names and this reader does not build.
type UnsupportedClassError struct{ Module, Name string }

// Error names the class.
func (e *UnsupportedClassError) Error() string {
	return fmt.Sprintf("pickle: class %s.%s is not one that this reader builds (only tensors and plain containers are)", e.Module, e.Name)
}

// FormatError is a malformed stream.
type FormatError struct {
	Offset int
	Msg    string
}

// Error gives the place.
func (e *FormatError) Error() string { return fmt.Sprintf("pickle: offset %d: %s", e.Offset, e.Msg) }
