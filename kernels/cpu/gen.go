package cpu

//go:generate sh -c "cd _asm && for f in gemm pointwise reduce convert conv tile half rnn gather quant; do go run . -family ${DOLLAR}{f} -out ../${DOLLAR}{f}_amd64.s -stubs ../z${DOLLAR}{f}_amd64.go -noasm ../z${DOLLAR}{f}_noasm.go -pkg cpu && gofmt -w ../z${DOLLAR}{f}_noasm.go || exit 1; done"
