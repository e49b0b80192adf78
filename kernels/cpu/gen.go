package cpu

//go:generate sh -c "cd _asm && for f in gemm pointwise reduce convert conv tile half rnn gather quant; do go run . -family ${DOLLAR}{f} -out ../${DOLLAR}{f}_amd64.s -stubs ../z${DOLLAR}{f}_amd64.go -noasm ../z${DOLLAR}{f}_noasm.go -pkg cpu && go run ./neon -family ${DOLLAR}{f} -out ../${DOLLAR}{f}_arm64.s -stubs ../z${DOLLAR}{f}_arm64.go || exit 1; done; go run . -family slide -out ../slide_amd64.s -stubs ../zslide_amd64.go -pkg cpu && go run . -family amx -out ../amx_amd64.s -stubs ../zamx_amd64.go -noasm ../zamx_noasm.go -pkg cpu || exit 1; gofmt -w ../z*.go"
