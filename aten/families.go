package aten

// families lists all operator tables. An operator lives in exactly one of them.
func families() [][]Op {
	return [][]Op{
		arithmeticOps, compareOps, bitwiseOps, unaryOps, activationOps, geluOps, activationBackwardOps, specialOps, lossOps, lossBackwardOps, ctcOps, linearLossOps, complexOps,
		reductionOps, quantileOps, scanOps, sortOps, uniqueOps,
		viewOps, splitOps, copyOps, creationOps, windowOps, joinOps, indexOps, diagonalOps, scatterOps, padOps, viewBackwardOps,
		matmulOps, groupedOps, linalgOps, linalgFactorOps, linalgSolveOps, linalgEigOps, matrixExpOps, fftOps, stftOps, distanceOps,
		convOps, poolOps, unpoolOps, poolBackwardOps, convBackward, normOps, attentionOps, nativeAttentionOps, rnnOps, resampleOps, antialiasOps, gridOps, embeddingOps, embeddingBagOps, gradientOps, batchNormOps, normBackwardOps, resampleBackwardOps, legacyConvOps, covarianceOps,
		weightNormOps, batchNormBackwardOps, distanceBackwardOps, derivativeOps, legacyNameOps,
		scaledOps, torchaoOps, attentionBackwardOps, bagBackwardOps, jaggedOps, ctcBackwardOps, visionBackwardOps, gridBackwardOps,
		quantizedOps, quantizedDecomposedOps, quantizedRowsOps, visionOps, roiOps, randomOps, dropoutOps, scalarOps, assertOps, foreachOps, miscOps, primOps,
	}
}
