"""Functions: calls without their tensors, with derivatives of any order and over batches.

Every operation is tested with the cases in `testdata`: the call, the text, the inferred shapes, the
gradients and the batched form of each case must agree with what the public operation gives.
"""
