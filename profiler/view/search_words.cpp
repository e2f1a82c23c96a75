#include "profiler/view/search_words.h"

#include "profiler/trace/text.h"

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

/// Whether the word's last digits, if it ends with some, are a number.
bool ends_with_number(std::string_view word) {
    const auto before = std::find_if_not(word.rbegin(), word.rend(), is_digit);
    if (before == word.rbegin()) return false;
    return before == word.rend() || !is_letter(*before);
}

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

}  // namespace

std::vector<std::string> search_words(std::string_view query) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : to_lower(query) + " ") {
        if (c != ' ') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
    }
    return words;
}

std::size_t find_word(std::string_view lower_text, std::string_view word, std::size_t from) {
    if (word.empty()) return std::string_view::npos;
    const bool starts_as_number = is_digit(word.front());
    const bool ends_as_number = ends_with_number(word);
    std::size_t at = lower_text.find(word, from);
    for (; at != std::string_view::npos; at = lower_text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        const bool cuts_start = starts_as_number && at > 0 && is_digit(lower_text[at - 1]);
        const bool cuts_end =
            ends_as_number && end < lower_text.size() && is_digit(lower_text[end]);
        if (!cuts_start && !cuts_end) break;
    }
    return at;
}

bool contains_all(std::string_view lower_text, const std::vector<std::string>& words) {
    return std::ranges::all_of(words, [&](const std::string& word) {
        return find_word(lower_text, word) != std::string_view::npos;
    });
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

}  // namespace profiler
