#include "profiler/view/selected/search_view.h"

#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/search_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

constexpr int kWhole = 100, kStart = 60, kWordStart = 40, kInside = 20;

/// The best place of one word; -1: it does not occur.
int word_score(std::string_view text, std::string_view word) {
    if (text == word) return kWhole;
    int best = -1;
    for (auto at = find_word(text, word); at != text.npos; at = find_word(text, word, at + 1)) {
        if (at == 0) return kStart;
        const bool is_inside = is_letter(text[at - 1]) || is_digit(text[at - 1]);
        best = std::max(best, is_inside ? kInside : kWordStart);
        if (best == kWordStart) break;
    }
    return best;
}

struct Match {
    int score = 0;
    std::size_t name = 0;
};

std::string count_text(const SearchName& name) {
    const auto [a, b] = std::pair(name.counts[0], name.counts[1]);
    if (name.kind == SearchKind::kLayer || name.kind == SearchKind::kModule) {
        return a > 0 && b > 0 ? "A and B" : a > 0 ? "A" : "B";
    }
    if (a == b) return fmt::format("×{} in A and B", format_count(a));
    if (b == 0) return fmt::format("×{} in A", format_count(a));
    if (a == 0) return fmt::format("×{} in B", format_count(b));
    return fmt::format("×{} in A, ×{} in B", format_count(a), format_count(b));
}

/// Names of kernels are templates of many lines.
std::string label_text(const SearchName& name) {
    constexpr std::size_t kLong = 70;
    if (name.kind != SearchKind::kKernel || name.name.size() <= kLong) return name.name;
    return short_name(name.name);
}

std::string amount_text(const SearchName& name) {
    const bool is_bytes = name.kind == SearchKind::kTensor || name.kind == SearchKind::kSite;
    const auto text = [&](int64_t amount) {
        return is_bytes ? format_bytes(amount) : format_duration(amount);
    };
    const auto [a, b] = std::pair(name.amounts[0], name.amounts[1]);
    if (a <= 0 && b <= 0) return "";
    if (name.counts[0] == 0 || name.counts[1] == 0) return text(std::max(a, b));
    const std::string of_a = text(a), of_b = text(b);
    return of_a == of_b ? of_a + " in each" : fmt::format("A {}, B {}", of_a, of_b);
}

SearchHit make_hit(const SearchIndex& index, std::size_t i) {
    const SearchName& name = index.names[i];
    SearchHit hit{i, label_text(name), count_text(name), ""};
    hit.amount = amount_text(name);
    return hit;
}

SearchGroup make_group(const SearchIndex& index, SearchKind kind, std::vector<Match>& matches) {
    const auto is_better = [&](const Match& one, const Match& other) {
        const int64_t amount = index.names[one.name].largest_amount();
        const int64_t other_amount = index.names[other.name].largest_amount();
        return std::tuple(-one.score, -amount, one.name) <
               std::tuple(-other.score, -other_amount, other.name);
    };
    const std::size_t shown = std::min(matches.size(), SearchView::kMostHits);
    std::partial_sort(matches.begin(), matches.begin() + static_cast<std::ptrdiff_t>(shown),
                      matches.end(), is_better);
    SearchGroup group{.kind = kind, .best_score = matches.front().score};
    group.left_out = static_cast<int64_t>(matches.size() - shown);
    for (std::size_t i = 0; i < shown; ++i) {
        group.hits.push_back(make_hit(index, matches[i].name));
    }
    return group;
}

}  // namespace

std::string_view heading_of(SearchKind kind) {
    constexpr std::array<std::string_view, kSearchKindCount> kHeadings{
        "Tensors", "Ops", "Kernels", "Modules", "Layers", "Lines of code"};
    return kHeadings[static_cast<std::size_t>(kind)];
}

std::string_view label_of(SearchKind kind) {
    constexpr std::array<std::string_view, kSearchKindCount> kLabels{
        "tensor", "op", "kernel", "module", "layer", "line of code"};
    return kLabels[static_cast<std::size_t>(kind)];
}

int search_score(std::string_view lower_text, std::span<const std::string> words) {
    constexpr std::size_t kBytesPerPoint = 8;
    int score = 0;
    std::size_t word_bytes = 0;
    for (const std::string& word : words) {
        const int one = word_score(lower_text, word);
        if (one < 0) return -1;
        score += one;
        word_bytes += word.size();
    }
    if (words.empty()) return 0;
    // Less than what the place of one word is worth, so that length decides between equals only.
    const std::size_t rest = lower_text.size() - std::min(lower_text.size(), word_bytes);
    return score - static_cast<int>(std::min<std::size_t>(rest / kBytesPerPoint, kInside - 1));
}

SearchView search(std::shared_ptr<const SearchIndex> index, std::string_view query) {
    SearchView view{std::move(index), std::string(query), {}};
    const std::vector<std::string> words = search_words(query);
    if (words.empty()) return view;
    std::array<std::vector<Match>, kSearchKindCount> matches;
    for (std::size_t i = 0; i < view.index->names.size(); ++i) {
        const SearchName& name = view.index->names[i];
        const int score = search_score(name.lower, words);
        if (score >= 0) matches[static_cast<std::size_t>(name.kind)].push_back({score, i});
    }
    for (std::size_t kind = 0; kind < kSearchKindCount; ++kind) {
        if (matches[kind].empty()) continue;
        view.groups.push_back(
            make_group(*view.index, static_cast<SearchKind>(kind), matches[kind]));
    }
    std::stable_sort(view.groups.begin(), view.groups.end(),
                     [](const SearchGroup& one, const SearchGroup& other) {
                         return one.best_score > other.best_score;
                     });
    return view;
}

}  // namespace profiler
