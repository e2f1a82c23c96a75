#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

/// Autocast for Meta tensors, with CUDA's rules.
///
/// torch's own autocast passes Meta tensors by. Here the same op lists (torch's, for CUDA) cast the
/// arguments of the same ops, and weights are cast once per outermost scope, so that a model on
/// Meta makes the casts, copies and cache entries that it would make on CUDA. Per thread.
namespace models::meta_autocast {

/// What matrix products are computed in; none: autocast is off.
std::optional<at::ScalarType> dtype();
void set_dtype(std::optional<at::ScalarType> dtype);

/// Drops the casts of weights.
void clear_cache();

}  // namespace models::meta_autocast
