#pragma once

#include "models/config/result.h"

#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

/// Names of enum values, both ways, and "did you mean".
namespace models {

template <typename Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view word) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == word) return static_cast<Enum>(i);
    }
    return std::nullopt;
}

/// `what` is the noun of the sentence: "precision".
template <typename Enum, std::size_t N>
Result<Enum> parse_name(const std::array<std::string_view, N>& names, std::string_view word,
                        std::string_view what) {
    if (const auto value = find_name<Enum>(names, word)) return *value;
    return fail("'{}' is not a {}: choose one of {}.", word, what, fmt::join(names, ", "));
}

/// Up to three of `names` that somebody who wrote `word` may have meant, best first, whatever the
/// case: those that have it, where it stands earliest first, of these the fewest edits ("h100":
/// "h100-sxm", "h100-pcie"; "orin": "jetson-orin"); where there are none, the nearest by edits.
std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names);

}  // namespace models
