#include "profiler/capture/source_lines.h"

#include "profiler/trace/text.h"

#include <filesystem>
#include <fstream>

namespace profiler {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxBytes = 4 << 20;  // of a file: longer ones are data

/// A trace holds UTF-8 only, and a source file may have another encoding.
std::string shown(const std::string& line) {
    constexpr const char* kSpace = " \t\r";
    const std::size_t first = line.find_first_not_of(kSpace);
    if (first == std::string::npos || !is_utf8(line)) return {};
    std::string text = line.substr(first, line.find_last_not_of(kSpace) - first + 1);
    if (text.size() > SourceLines::kMaxLength) text.resize(SourceLines::kMaxLength);
    while (!is_utf8(text)) text.pop_back();  // a character that was cut
    return text;
}

std::vector<std::string> read_lines(const std::string& file) {
    std::error_code missing;
    if (!file.ends_with(".py") || !fs::is_regular_file(file, missing)) return {};
    if (fs::file_size(file, missing) > kMaxBytes) return {};
    std::vector<std::string> lines;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) lines.push_back(shown(line));
    return lines;
}

}  // namespace

std::string_view SourceLines::of(std::string_view file, int64_t line) {
    const auto [found, is_new] = lines_.try_emplace(std::string(file));
    if (is_new) found->second = read_lines(found->first);
    const std::vector<std::string>& lines = found->second;
    if (line < 1 || static_cast<std::size_t>(line) > lines.size()) return {};
    return lines[static_cast<std::size_t>(line) - 1];
}

}  // namespace profiler
