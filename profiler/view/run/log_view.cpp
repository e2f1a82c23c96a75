#include "profiler/view/run/log_view.h"

#include <algorithm>

namespace profiler {
namespace {

constexpr std::size_t kMostLineBytes = 2000;
constexpr char kEscape = '\x1B';

/// The end of an escape sequence of a terminal that starts at `at`: "\x1B[31m".
std::size_t end_of_escape(std::string_view line, std::size_t at) {
    if (at + 1 >= line.size() || line[at + 1] != '[') return at + 1;
    std::size_t end = at + 2;
    while (end < line.size() && (line[end] < '@' || line[end] > '~')) ++end;
    return std::min(end + 1, line.size());
}

std::string shown_line(std::string_view line) {
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::size_t back = line.rfind('\r'); back != line.npos) line.remove_prefix(back + 1);
    std::string shown;
    for (std::size_t i = 0; i < line.size() && shown.size() < kMostLineBytes;) {
        const char c = line[i];
        if (c == kEscape) {
            i = end_of_escape(line, i);
            continue;
        }
        const bool is_control = (c >= 0 && c < ' ') || c == 0x7F;
        shown += is_control ? ' ' : c;
        ++i;
    }
    if (shown.size() < kMostLineBytes) return shown;
    while (!shown.empty() && (shown.back() & 0xC0) == 0x80) shown.pop_back();
    if (!shown.empty() && (shown.back() & 0x80) != 0) shown.pop_back();
    return shown + "…";
}

}  // namespace

std::vector<std::string> log_lines(std::string_view text) {
    std::vector<std::string> lines;  // the newest first
    while (text.ends_with('\n')) text.remove_suffix(1);
    while (!text.empty() && lines.size() < kMostLogLines) {
        const std::size_t end = text.rfind('\n');
        const std::size_t start = end == text.npos ? 0 : end + 1;
        lines.push_back(shown_line(text.substr(start)));
        text = text.substr(0, end == text.npos ? 0 : end);
    }
    std::ranges::reverse(lines);
    return lines;
}

std::string_view text_since(std::string_view text, std::string_view seen) {
    constexpr std::size_t kSure = 256;  // bytes that hardly occur twice
    if (seen.empty()) return text;
    if (text.starts_with(seen)) return text.substr(seen.size());
    const std::string_view tail = seen.substr(seen.size() - std::min(kSure, seen.size()));
    const std::size_t found = text.rfind(tail);
    return found == text.npos ? text : text.substr(found + tail.size());
}

}  // namespace profiler
