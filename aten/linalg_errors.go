package aten

import (
	"strconv"
	"strings"
)

func itoa(i int) string { return strconv.Itoa(i) }

// failInfo refuses a matrix by LAPACK's info, which means something else for each factorization.
func failInfo(where, api string, info int32) {
	lin := func(format string, args ...any) { FailAs("LinAlgError", where+": "+format, args...) }
	has := func(part string) bool { return strings.Contains(api, part) }
	if info < 0 {
		Fail("%s: Argument %d has illegal value. Most certainly there is a bug in the implementation calling the backend library.", where, -info)
	}
	switch {
	case has("inv"):
		lin("The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular.", info)
	case has("solve"):
		lin("The solver failed because the input matrix is singular.")
	case has("cholesky"):
		lin("The factorization could not be completed because the input is not positive-definite (the leading minor of order %d is not positive-definite).", info)
	case has("svd"):
		lin("The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: %d).", info)
	case has("eig"), has("syevd"):
		lin("The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: %d).", info)
	case has("lstsq"):
		lin("The least squares solution could not be computed because the input matrix does not have full rank (error code: %d).", info)
	case has("lu_factor"):
		Fail("%s: U[%d,%d] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)", where, info, info)
	}
	Fail("%s: Unknown error code: %d.", where, info)
}
