// Package schema is the serialized form of exported programs: PyTorch's schema 8.20 as Go types, its JSON text, and the steps
// that turn every older version since PyTorch 2.1 into it. It knows no tensors and runs nothing.
//
// The types follow PyTorch's schema one to one; tables.go holds field names, numbers and defaults. A struct keeps fields of
// newer minor versions that it does not know and writes them back.
package schema
