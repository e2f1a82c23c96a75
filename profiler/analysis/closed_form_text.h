#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The text of a closed form: "n(16e+2)+T(2e+1)+4Rs" out of its terms.
namespace profiler {

/// What a term of a closed form counts (docs/notation.md).
enum class Unit : uint8_t {
    kHidden,             // n = B*S*H
    kIntermediate,       // f = B*S*I
    kScores,             // T = B*A*S^2
    kRows,               // R = B*S
    kHeadRows,           // B*A*S
    kHiddenSquared,      // H^2, weights
    kHiddenIntermediate  // H*I, weights
};

/// How its bytes follow from the count.
enum class Scale : uint8_t {
    kElement,    // e bytes each
    kBytes,      // a whole number of bytes each
    kStatistic,  // s bytes each, one LayerNorm statistic
    kBits        // c8(count) = ceil(count / 8) bytes in all
};

struct Term {
    Unit unit = Unit::kHidden;
    Scale scale = Scale::kElement;
    int64_t bytes = 1;  // for kBytes
};

/// "en", "2T", "Rs", "c8(4n)". `intermediate_per_hidden`: I/H when whole (then f is written as a
/// multiple of n), else 0.
std::string to_text(const Term& term, int64_t intermediate_per_hidden);

/// The sum of terms, like units gathered.
std::string sum_to_text(const std::vector<Term>& terms, int64_t intermediate_per_hidden);

}  // namespace profiler
