package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// maxNumber is the longest number written as text, in bytes.
const maxNumber = 400

// argument lengths of opcodes: n >= 0 fixed, or one of these.
const (
	argLine  = -1 // up to a newline
	argLine2 = -2 // two lines
	argLen1  = -3 // one length byte, then so many bytes
	argLen4  = -4
	argLen8  = -8
	argBad   = -9
)

var opArgs = func() (t [256]int8) {
	for i := range t {
		t[i] = argBad
	}
	for _, c := range []byte("(.012NRbadelost]})u\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94Q") {
		t[c] = 0
	}
	for _, c := range []byte("FILgpSVP") {
		t[c] = argLine
	}
	t['c'], t['i'] = argLine2, argLine2
	t['J'], t['r'], t['j'] = 4, 4, 4
	t['K'], t['h'], t['q'], t['\x80'] = 1, 1, 1, 1
	t['M'] = 2
	t['G'], t['\x95'] = 8, 8
	t['U'], t['C'], t['\x8a'], t['\x8c'] = argLen1, argLen1, argLen1, argLen1
	t['X'], t['T'], t['B'], t['\x8b'] = argLen4, argLen4, argLen4, argLen4
	t['\x8d'], t['\x8e'] = argLen8, argLen8
	return t
}()

// check walks the opcodes up to STOP and refuses those that are unknown or claim more than there is, and more open marks or
// opcodes than any honest file has. It gives the number of opcodes.
func check(b []byte) (ops int, err error) {
	marks := 0
	memo := memo{}
	for pos := 0; pos < len(b); {
		op, at := b[pos], pos
		if ops++; ops > maxOps {
			return 0, &FormatError{at, fmt.Sprintf("more than %d opcodes", maxOps)}
		}
		switch op {
		case '(':
			marks++
		case 't', 'l', 'd', 'u', 'e', 'i', 'o', '1', 0x90, 0x91:
			marks--
		}
		if marks < 0 || marks > maxMarks {
			return 0, &FormatError{at, fmt.Sprintf("%d marks are open", marks)}
		}
		pos++
		n := int64(opArgs[op])
		rest := b[pos:]
		switch n {
		case argBad:
			return 0, &FormatError{at, fmt.Sprintf("opcode 0x%02x is unknown or not allowed", op)}
		case argLine, argLine2:
			total := 0
			for range -n {
				i := bytes.IndexByte(rest[total:], '\n')
				if i < 0 {
					return 0, &FormatError{at, "a line does not end"}
				}
				total += i + 1
			}
			if n = int64(total); n > maxNumber && (op == 'F' || op == 'I' || op == 'L') {
				return 0, &FormatError{at, fmt.Sprintf("a number of %d digits", n)}
			}
		case argLen1, argLen4, argLen8:
			k := int(-n)
			if n == argLen1 {
				k = 1
			}
			if len(rest) < k {
				return 0, &FormatError{at, "the stream ends inside a length"}
			}
			n = int64(number(rest[:k]))
			if n < 0 || n > int64(len(rest)-k) {
				return 0, &FormatError{at, fmt.Sprintf("%d bytes are claimed, %d are left", uint64(n), len(rest)-k)}
			}
			if op == 0x8a && n > 16 || op == 0x8b && n > 16 {
				return 0, &FormatError{at, "an integer of more than 128 bits"}
			}
			n += int64(k)
		}
		if n > int64(len(rest)) {
			return 0, &FormatError{at, "the stream ends inside an argument"}
		}
		if op == 0x95 { // a frame: the bytes of its length follow as opcodes
			if f := binary.LittleEndian.Uint64(rest); f > uint64(len(rest)-8) {
				return 0, &FormatError{at, "a frame is longer than the stream"}
			}
		}
		if !memo.follow(op, rest[:n]) {
			return 0, &FormatError{at, "a value is fetched that was never stored"}
		}
		if op == '.' {
			return ops, nil
		}
		pos += int(n)
	}
	return 0, &FormatError{len(b), "the stream has no STOP"}
}

// memo holds the numbers under which values were stored.
type memo map[uint64]bool

// follow notes a store and reports whether a fetch finds a value.
func (m memo) follow(op byte, arg []byte) bool {
	switch op {
	case 'q', 'r':
		m[number(arg)] = true
	case 0x94: // the library's rule is that of Python
		m[uint64(len(m))] = true
	case 'h', 'j':
		return m[number(arg)]
	case 'p', 'g':
		n, err := strconv.ParseUint(string(arg[:len(arg)-1]), 10, 32)
		if op == 'g' {
			return err == nil && m[n]
		}
		m[n] = true
	}
	return true
}

// number reads a little-endian argument of up to 8 bytes.
func number(arg []byte) uint64 {
	var buf [8]byte
	copy(buf[:], arg)
	return binary.LittleEndian.Uint64(buf[:])
}
