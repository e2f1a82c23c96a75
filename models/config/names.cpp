#include "models/config/names.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace models {
namespace {

/// Levenshtein distance, one row at a time: O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

}  // namespace

std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names) {
    std::vector<std::string_view> sorted = names;
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::string_view a, std::string_view b) {
        return edit_distance(word, a) < edit_distance(word, b);
    });
    if (sorted.size() > 3) sorted.resize(3);
    return sorted;
}

}  // namespace models
