#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a filter or search box looks for: texts that contain every word, in any case.
namespace profiler {

/// The words of a query, in lower case.
std::vector<std::string> search_words(std::string_view query);

/// Where the word occurs next, from `from` on; npos: nowhere. Digits at an end of the word match no
/// part of a longer row of digits: "layer.1" is not in "layer.12", nor is "6" in "f16". Only digits
/// that follow a letter in the word may: "f1" is in "f16", and "layer1" in "layer12".
std::size_t find_word(std::string_view lower_text, std::string_view word, std::size_t from = 0);

/// Whether the text, which is in lower case, contains every word.
bool contains_all(std::string_view lower_text, const std::vector<std::string>& words);

/// How well the words match a text in lower case: -1 unless it contains them all; higher if they
/// are the whole text, its start or the start of a word. Of two such texts the shorter is better.
int search_score(std::string_view lower_text, std::span<const std::string> words);

}  // namespace profiler
