#pragma once

#include "kernels/inplace_gelu.h"

// GELU and its derivative in double precision, and the exact inversion that In-place GELU
// approximates: the truth that kernels are tested against. Slow on purpose: bisection, no fit, no
// Newton.

namespace kernels::reference {

double gelu(GeluKind kind, double x);
double gelu_derivative(GeluKind kind, double x);

/// x* and gelu(x*), where gelu has its minimum.
double gelu_minimum_x(GeluKind kind);
double gelu_minimum(GeluKind kind);

/// gelu'(x) for the x on the branch with gelu(x) = o. 0 for o below the minimum, which a rounded
/// stored output can be.
double gelu_derivative_from_output(GeluKind kind, double o, bool right);

}  // namespace kernels::reference
