#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

/// Autocast for Meta tensors, with CUDA's rules.
///
/// torch's autocast ignores Meta tensors. This one casts the arguments of the same ops (torch's op
/// lists for CUDA), and casts each weight once per outermost scope. A model on Meta thus makes the
/// casts, copies and cache entries that it makes on CUDA. Per thread.
namespace models::meta_autocast {

/// The dtype of matrix multiplications; nullopt if autocast is off.
std::optional<at::ScalarType> dtype();
void set_dtype(std::optional<at::ScalarType> dtype);

/// Drops the cached casts of weights.
void clear_cache();

}  // namespace models::meta_autocast
