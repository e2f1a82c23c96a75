#pragma once

#include "profiler/analysis/closed_form.h"
#include "profiler/analysis/ledger.h"

#include <cstddef>
#include <utility>
#include <vector>

/// Which rows of two ledgers, or of a ledger and a closed form, are about the same tensor.
namespace profiler {

inline constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

/// For each row of `first` the row of `second` with the same module and tensor name, else with the
/// same layer and name, or kNoRow. Where names repeat, rows of equal size are paired first, then in
/// order. Each row is used once.
std::vector<std::size_t> match_ledgers(const Ledger& first, const Ledger& second);

/// For each row of the ledger its row of the closed form, or kNoRow: rows of middle layers (neither
/// first nor last) only, by tensor name, equal sizes first, each closed form row once per layer.
std::vector<std::size_t> match_closed_form(const Ledger& ledger, const ClosedForm& closed_form,
                                           int64_t num_layers);

}  // namespace profiler
