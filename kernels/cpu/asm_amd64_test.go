//go:build !purego

package cpu

func asmAvailable() bool { return hasAVX2 }

func setAsm(on bool) (old bool) {
	old, hasAVX2 = hasAVX2, on
	return old
}
