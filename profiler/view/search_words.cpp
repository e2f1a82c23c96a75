#include "profiler/view/search_words.h"

#include "profiler/trace/text.h"

#include <algorithm>
#include <utility>

namespace profiler {

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

bool contains_all(std::string_view lower_text, const std::vector<std::string>& words) {
    return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
        return lower_text.find(word) != std::string_view::npos;
    });
}

}  // namespace profiler
