#pragma once

#include "kernels/dropout.h"

#include <cstdint>
#include <vector>

// Dropout, and softmax with dropout, in plain loops and double precision: the truth that kernels
// are tested against.

namespace kernels::reference {

/// keep[i] of the first `count` elements.
std::vector<bool> dropout_keep(const DropoutKey& key, double dropout_p, int64_t count);

/// keep ? x / q : 0; forward of x and backward of dy alike.
std::vector<double> dropout(const std::vector<double>& x, const std::vector<bool>& keep,
                            double dropout_p);

/// Softmax of each row of `size` logits; -inf gives 0.
std::vector<double> softmax(const std::vector<double>& logits, int64_t size);

/// dlogits from dD, P and keep factors (1 / q or 0 per element).
std::vector<double> softmax_dropout_backward(const std::vector<double>& ddropped,
                                             const std::vector<double>& probs,
                                             const std::vector<double>& keep_factor, int64_t size);

}  // namespace kernels::reference
