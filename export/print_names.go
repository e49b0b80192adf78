package export

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// reserved are the names that generated code must not use: Python's keywords and builtins, and what PyTorch puts into the
// namespace of its code.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(`ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError
		BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
		ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup False
		FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning
		IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError
		ModuleNotFoundError NameError None NoneType NotADirectoryError NotImplemented NotImplementedError OSError OverflowError
		PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError
		RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError True
		TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning
		ValueError Warning ZeroDivisionError __build_class__ __debug__ __doc__ __import__ __loader__ __name__ __package__ __spec__
		abs aiter all and anext any as ascii assert async await bin bool break breakpoint bytearray bytes callable chr class
		classmethod compile complex continue copyright credits def del delattr device dict dir divmod elif else enumerate eval except
		exec exit filter finally float for format from frozenset fx_pytree getattr global globals hasattr hash help hex id if import
		in inf input int is isinstance issubclass iter lambda len license list locals map max memoryview min nan next nonlocal not
		object oct open or ord pass pow print property pytree quit raise range repr return reversed round set setattr slice sorted
		staticmethod str sum super torch try tuple type vars while with yield zip`) {
		m[n] = true
	}
	return m
}()

// Namespace gives out unique names as PyTorch's code printer does: a taken or reserved name gets the next free number.
type Namespace struct {
	used map[string]bool
	base map[string]int
}

// NewNamespace makes an empty one.
func NewNamespace() *Namespace {
	return &Namespace{used: map[string]bool{}, base: map[string]int{}}
}

var (
	numbered     = regexp.MustCompile(`^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$`)
	notInAName   = regexp.MustCompile(`[^0-9a-zA-Z_]+`)
	leadingDigit = regexp.MustCompile(`^[0-9]`)
)

// Clone makes an independent copy.
func (s *Namespace) Clone() *Namespace {
	return &Namespace{used: maps.Clone(s.used), base: maps.Clone(s.base)}
}

// Create gives the next free name for a wish, and takes it.
func (s *Namespace) Create(name string) string {
	m := numbered.FindStringSubmatch(name)
	if m == nil {
		name = notInAName.ReplaceAllString(name, "_")
		if name == "" {
			name = "_unnamed"
		}
		if leadingDigit.MatchString(name) {
			name = "_" + name
		}
		m = numbered.FindStringSubmatch(name)
	}
	base, num := m[1], 0
	if m[2] == "" || s.used[name] {
		num = s.base[base]
		if reserved[name] {
			num++
			name = base + "_" + strconv.Itoa(num)
		}
	} else {
		num, _ = strconv.Atoi(m[2])
	}
	for s.used[name] {
		num++
		name = base + "_" + strconv.Itoa(num)
	}
	s.used[name] = true
	s.base[base] = num
	return name
}

// camel finds where PyTorch puts an underscore into a name.
var camel = regexp.MustCompile(`([a-z])([A-Z])`)

// TargetName is the name that PyTorch derives from a call's target: "split_tensor" for torch.ops.aten.split.Tensor, "cond" for a
// higher-order operator.
func TargetName(target string) string {
	parts := strings.Split(target, ".")
	base := parts[len(parts)-1]
	if len(parts) > 4 && strings.HasPrefix(target, "torch.ops.") {
		base = parts[len(parts)-2] + "_" + base
	}
	return strings.ToLower(camel.ReplaceAllString(base, "${1}_${2}"))
}
