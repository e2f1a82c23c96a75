#include "profiler/view/axis.h"

#include <cstddef>
#include <vector>

// Fitting texts into widths: the second half of axis.h.
namespace profiler {
namespace {

constexpr std::string_view kEllipsis = "…";

/// Where each UTF-8 character starts, and the end.
std::vector<std::size_t> character_starts(std::string_view text) {
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_continuation = (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
        if (!is_continuation) starts.push_back(i);
    }
    starts.push_back(text.size());
    return starts;
}

/// `count` characters of `text` with an ellipsis in the middle; the larger half is from its start.
std::string shorten(std::string_view text, const std::vector<std::size_t>& starts,
                    std::size_t count) {
    const std::size_t total = starts.size() - 1;
    const std::size_t head = (count + 1) / 2;
    const std::size_t tail = count / 2;
    std::string result(text.substr(0, starts[head]));
    result += kEllipsis;
    result += text.substr(starts[total - tail]);
    return result;
}

bool breaks_after(char c) { return c == ' ' || c == ',' || c == '-' || c == '=' || c == '/'; }

/// The end of the longest prefix of `text` that fits, if possible at a place to break.
std::size_t find_break(std::string_view text, double max_width, const MeasureText& measure) {
    const std::vector<std::size_t> starts = character_starts(text);
    std::size_t last_fit = starts.size() > 1 ? starts[1] : text.size();  // always some progress
    std::size_t last_break = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) {
        std::string_view start = text.substr(0, starts[i]);
        while (start.ends_with(' ')) start.remove_suffix(1);
        if (measure(start) > max_width) break;
        last_fit = starts[i];
        if (breaks_after(text[starts[i] - 1])) last_break = starts[i];
    }
    return last_break > 0 ? last_break : last_fit;
}

}  // namespace

std::string fit_label(std::string_view text, double max_width, const MeasureText& measure) {
    if (measure(text) <= max_width) return std::string(text);
    const std::vector<std::size_t> starts = character_starts(text);
    // The width grows with the number of characters, so bisection finds the most that fit.
    std::size_t fits = 0;
    std::size_t too_many = starts.size() - 1;
    while (too_many - fits > 1) {
        const std::size_t middle = (fits + too_many) / 2;
        (measure(shorten(text, starts, middle)) <= max_width ? fits : too_many) = middle;
    }
    const std::string shortest = shorten(text, starts, fits);
    return measure(shortest) <= max_width ? shortest : std::string();
}

std::string fit_path(std::string_view path, double max_width, const MeasureText& measure) {
    if (measure(path) <= max_width) return std::string(path);
    std::size_t number = path.npos;  // where the last part that counts begins: which layer it is
    std::vector<std::string> ends;
    for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
        const std::string_view end = path.substr(dot + 1);
        if (!end.empty() && end.front() >= '0' && end.front() <= '9') number = ends.size();
        ends.emplace_back(end);
    }
    if (number < ends.size() && number + 1 < ends.size()) {
        const std::string digits = ends[number].substr(0, ends[number].find('.'));
        // After the ends that hold the layer's number, before the shorter ends without it.
        std::vector<std::string> numbered;
        for (std::size_t i = number + 2; i < ends.size(); ++i) {
            numbered.push_back(digits + std::string(kEllipsis) + ends[i]);
        }
        ends.insert(ends.begin() + static_cast<std::ptrdiff_t>(number) + 1, numbered.begin(),
                    numbered.end());
    }
    for (const std::string& end : ends) {
        std::string shown = std::string(kEllipsis) + end;
        if (measure(shown) <= max_width) return shown;
    }
    return fit_label(path, max_width, measure);
}

std::vector<std::string> wrap_label(std::string_view text, double max_width, int max_lines,
                                    const MeasureText& measure) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const bool is_last = static_cast<int>(lines.size()) + 1 >= max_lines;
        if (is_last || measure(text) <= max_width) {
            lines.push_back(fit_label(text, max_width, measure));
            break;
        }
        const std::size_t end = find_break(text, max_width, measure);
        std::string_view line = text.substr(0, end);
        while (line.ends_with(' ')) line.remove_suffix(1);
        lines.emplace_back(line);
        text.remove_prefix(end);
        while (text.starts_with(' ')) text.remove_prefix(1);
    }
    return lines;
}

}  // namespace profiler
