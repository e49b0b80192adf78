package cpu

//go:generate sh -c "cd _asm && go run . -out ../zasm_amd64.s -stubs ../zasm_amd64.go -pkg cpu"
