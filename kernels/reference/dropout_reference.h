#pragma once

#include "kernels/dropout.h"

#include <cstdint>
#include <vector>

// Dropout in plain loops and double precision: the truth that kernels are tested against.

namespace kernels::reference {

/// keep[i] of the first `count` elements.
std::vector<bool> dropout_keep(const DropoutKey& key, double dropout_p, int64_t count);

/// keep ? x / q : 0; forward of x and backward of dy alike.
std::vector<double> dropout(const std::vector<double>& x, const std::vector<bool>& keep,
                            double dropout_p);

}  // namespace kernels::reference
