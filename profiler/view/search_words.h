#pragma once

#include <string>
#include <string_view>
#include <vector>

/// What a filter or search box looks for: texts that contain every word, in any case.
namespace profiler {

/// The words of a query, in lower case.
std::vector<std::string> search_words(std::string_view query);

/// Whether the text, which is in lower case, contains every word.
bool contains_all(std::string_view lower_text, const std::vector<std::string>& words);

}  // namespace profiler
