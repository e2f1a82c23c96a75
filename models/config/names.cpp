#include "models/config/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <tuple>

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

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

/// How near a name is to the word; the smallest candidate is the nearest.
struct Candidate {
    bool lacks_word = true;
    std::size_t word_at = 0;  // where the word starts in the name
    std::size_t distance = 0;
    std::string_view name;
};

Candidate compare(const std::string& word, std::string_view name) {
    const std::string lower = lower_case(name);
    const std::size_t at = word.empty() ? std::string::npos : lower.find(word);
    const bool lacks_word = at == std::string::npos;
    return {.lacks_word = lacks_word,
            .word_at = lacks_word ? 0 : at,
            .distance = edit_distance(word, lower),
            .name = name};
}

}  // namespace

bool is_same_name(std::string_view word, std::string_view name) {
    return lower_case(word) == lower_case(name);
}

std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names) {
    constexpr std::size_t kMostNames = 3;
    const std::string lower = lower_case(word);
    std::vector<Candidate> candidates;
    for (const std::string_view name : names) candidates.push_back(compare(lower, name));
    std::ranges::stable_sort(candidates, {}, [](const Candidate& one) {
        return std::tie(one.lacks_word, one.word_at, one.distance);
    });
    std::vector<std::string_view> nearest;
    for (const Candidate& candidate : candidates) {
        // If some names contain the word, the other names are no help.
        if (nearest.size() == kMostNames || candidate.lacks_word != candidates.front().lacks_word) {
            break;
        }
        nearest.push_back(candidate.name);
    }
    return nearest;
}

std::optional<std::string_view> misspelled_name(std::string_view word,
                                                const std::vector<std::string_view>& names) {
    const std::string lower = lower_case(word);
    std::vector<Candidate> candidates;
    for (const std::string_view name : names) candidates.push_back(compare(lower, name));
    const auto nearest = std::ranges::min_element(candidates, {}, &Candidate::distance);
    if (nearest == candidates.end() || nearest->distance * 2 > word.size()) return std::nullopt;
    return nearest->name;
}

}  // namespace models
