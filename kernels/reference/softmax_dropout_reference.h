#pragma once

#include <cstdint>
#include <vector>

// Softmax with dropout in plain loops and double precision: the truth that kernels are tested
// against.

namespace kernels::reference {

/// Softmax of each row of `size` logits; -inf gives 0.
std::vector<double> softmax(const std::vector<double>& logits, int64_t size);

/// dlogits from dD, P and keep factors (1 / q or 0 per element).
std::vector<double> softmax_dropout_backward(const std::vector<double>& ddropped,
                                             const std::vector<double>& probs,
                                             const std::vector<double>& keep_factor, int64_t size);

}  // namespace kernels::reference
