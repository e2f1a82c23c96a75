#pragma once

#include "models/config/saved_tensor.h"

#include <cstdint>
#include <string>
#include <vector>

/// Writes a closed form from its terms: "n(16e+2)+T(2e+1)+4Rs".
namespace profiler {

using models::Scale;
using models::Term;
using models::Unit;

/// "en", "2T", "Rs", "c8(4n)". `intermediate_per_hidden` is I/H if that is a whole number, and then
/// f is written as a multiple of n; otherwise it is 0.
std::string to_text(const Term& term, int64_t intermediate_per_hidden);

/// The sum of the terms, with terms of the same unit joined.
std::string sum_to_text(const std::vector<Term>& terms, int64_t intermediate_per_hidden);

}  // namespace profiler
