#include "profiler/analysis/compare/same_lines.h"

#include "profiler/analysis/step/origin.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

namespace profiler {
namespace {

/// What two lines have in common that may be the same. Empty: nothing that tells.
using Key = std::string (*)(const BreakdownRow& line);

std::string with_code(std::string_view place, const BreakdownRow& line) {
    return line.code.empty() ? "" : std::string(place) + '\n' + line.code;
}

struct KeyRow {
    Key key;
    bool takes_several;  // the k-th line of a key is the k-th of the other program
};

/// From the most to the least telling.
constexpr std::array<KeyRow, 7> kKeys{
    {{[](const BreakdownRow& line) { return with_code(without_line(line.name), line); }, true},
     {[](const BreakdownRow& line) {
          return with_code(without_line(without_folder(line.name)), line);
      },
      true},
     {[](const BreakdownRow& line) { return with_code(line.name, line); }, false},
     {[](const BreakdownRow& line) { return line.name; }, false},
     {[](const BreakdownRow& line) { return std::string(without_folder(line.name)); }, false},
     {[](const BreakdownRow& line) { return without_line(line.name); }, false},
     {[](const BreakdownRow& line) { return without_line(without_folder(line.name)); }, false}}};

/// 54 of "bert/model.py:54 forward"; 0: it is no line.
int64_t number_of(const BreakdownRow& line) {
    const std::size_t colon = line.name.rfind(':');
    int64_t number = 0;
    if (colon != std::string::npos) {
        const char* const text = line.name.data();
        std::from_chars(text + colon + 1, text + line.name.size(), number);
    }
    return number;
}

/// The lines of a program that are still alone, by their key, in the order of their numbers.
std::map<std::string, std::vector<std::size_t>> lines_by_key(std::span<const BreakdownRow> lines,
                                                             const std::vector<bool>& has_same,
                                                             Key key) {
    std::map<std::string, std::vector<std::size_t>> found;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (has_same[i]) continue;
        std::string text = key(lines[i]);
        if (!text.empty()) found[std::move(text)].push_back(i);
    }
    for (auto& [text, own] : found) {
        std::ranges::stable_sort(own, {}, [&](std::size_t i) { return number_of(lines[i]); });
    }
    return found;
}

}  // namespace

std::vector<std::size_t> find_same_lines(std::span<const BreakdownRow> before,
                                         std::span<const BreakdownRow> after) {
    std::vector<std::size_t> same(after.size(), kNoLine);
    std::vector<bool> is_old(before.size()), is_new(after.size());
    for (const auto& [key, takes_several] : kKeys) {
        const auto old_lines = lines_by_key(before, is_old, key);
        for (const auto& [text, new_lines] : lines_by_key(after, is_new, key)) {
            const auto found = old_lines.find(text);
            if (found == old_lines.end() || found->second.size() != new_lines.size()) continue;
            if (new_lines.size() > 1 && !takes_several) continue;
            for (std::size_t i = 0; i < new_lines.size(); ++i) {
                same[new_lines[i]] = found->second[i];
                is_old[found->second[i]] = is_new[new_lines[i]] = true;
            }
        }
    }
    return same;
}

}  // namespace profiler
