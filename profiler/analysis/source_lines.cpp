#include "profiler/analysis/source_lines.h"

#include <sys/stat.h>

#include <fstream>

namespace profiler {
namespace {

constexpr off_t kMaxBytes = 4 << 20;  // a trace of someone else may name any file

std::string trimmed(const std::string& line) {
    constexpr const char* kSpace = " \t\r";
    const std::size_t first = line.find_first_not_of(kSpace);
    if (first == std::string::npos) return {};
    return line.substr(first, line.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

std::string_view SourceLines::of(std::string_view file, int64_t line) {
    const auto [found, is_new] = lines_.try_emplace(std::string(file));
    if (is_new && file.ends_with(".py")) found->second = read(found->first);
    const std::vector<std::string>& lines = found->second;
    if (line < 1 || static_cast<std::size_t>(line) > lines.size()) return {};
    return lines[static_cast<std::size_t>(line) - 1];
}

std::vector<std::string> SourceLines::read(const std::string& file) const {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    const int64_t written_unix_ns =
        status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    const bool is_newer = recorded_unix_ns_ > 0 && written_unix_ns > recorded_unix_ns_;
    if (is_newer || status.st_size > kMaxBytes) return {};
    std::vector<std::string> lines;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) lines.push_back(trimmed(line));
    return lines;
}

}  // namespace profiler
