#pragma once

#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/ledger.h"

#include <cstddef>
#include <cstdint>
#include <vector>

/// Matches rows of two ledgers, or of a ledger and a closed form, that describe the same tensor.
namespace profiler {

inline constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

/// For each row of `first`: the row of `second` with the same module and tensor name, or else with
/// the same layer and tensor name, or else kNoRow. Where names repeat, rows of equal size are
/// paired first and the others in their order. Each row is used once.
std::vector<std::size_t> match_ledgers(const Ledger& first, const Ledger& second);

/// For each row of the ledger: the row of the closed form with the same tensor name, or kNoRow.
/// Only middle layers (neither the first nor the last) have a closed form. Rows of equal size are
/// paired first. Each row of the closed form is used once per layer.
std::vector<std::size_t> match_closed_form(const Ledger& ledger, const ClosedForm& closed_form,
                                           int64_t num_layers);

}  // namespace profiler
