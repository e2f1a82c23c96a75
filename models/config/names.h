#pragma once

#include "models/config/result.h"

#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

/// Names of enum values, read and written, and suggestions for misspelled names.
namespace models {

/// Whether a word that a user wrote is this name: "RTX4090" is "rtx4090".
bool is_same_name(std::string_view word, std::string_view name);

template <typename Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view word) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names[i] == word) return static_cast<Enum>(i);
    }
    return std::nullopt;
}

/// Case does not matter. `what` is the noun of the sentence: "precision".
template <typename Enum, std::size_t N>
Result<Enum> parse_name(const std::array<std::string_view, N>& names, std::string_view word,
                        std::string_view what) {
    for (std::size_t i = 0; i < N; ++i) {
        if (is_same_name(word, names[i])) return static_cast<Enum>(i);
    }
    return fail("'{}' is not a {}: choose one of {}.", word, what, fmt::join(names, ", "));
}

/// Up to three of `names` that the user may have meant by `word`, best first; case does not matter.
/// Names that contain the word come first, ordered by where it starts and then by edit distance
/// ("h100": "h100-sxm", "h100-pcie"; "orin": "jetson-orin"). If no name contains it, the nearest
/// names by edit distance.
std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names);

/// The name that `word` likely misspells: at most half of the letters differ. None if there is no
/// such name.
std::optional<std::string_view> misspelled_name(std::string_view word,
                                                const std::vector<std::string_view>& names);

}  // namespace models
