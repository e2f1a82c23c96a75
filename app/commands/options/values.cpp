#include "app/commands/options/values.h"

#include "profiler/trace/units.h"

#include <charconv>
#include <cmath>

namespace app {
namespace {

template <typename Number>
std::optional<Number> parse(std::string_view text) {
    Number number{};
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_whole_text = error == std::errc() && end == text.data() + text.size();
    return is_whole_text ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_whole_number(std::string_view text) { return parse<int64_t>(text); }

std::optional<double> parse_decimal_number(std::string_view text) {
    const auto number = parse<double>(text);
    return number && std::isfinite(*number) ? number : std::nullopt;
}

models::Result<double> parse_percentage(std::string_view text, std::string_view option) {
    double percent = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, percent);
    std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    const bool valid = error == std::errc() && std::isfinite(percent) && percent >= 0 &&
                       (unit.empty() || unit == "%");
    if (!valid) return models::fail("{} takes a percentage such as 2%, not '{}'.", option, text);
    return percent / 100;
}

models::Result<int64_t> parse_size(std::string_view option, std::string_view text) {
    const auto bytes = profiler::parse_bytes(text);
    if (bytes && *bytes == 0) return models::fail("{} is 0: give a size, such as 14GiB.", option);
    return bytes;
}

models::Result<std::vector<std::string>> split_list(std::string_view option,
                                                    std::string_view list) {
    std::vector<std::string> items;
    for (std::string_view rest = list;;) {
        const std::size_t comma = rest.find(',');
        std::string item(rest.substr(0, comma));
        if (item.empty()) {
            return models::fail("{} '{}' has an empty item: write items with commas between.",
                                option, list);
        }
        append_once(items, std::move(item));
        if (comma == std::string_view::npos) return items;
        rest.remove_prefix(comma + 1);
    }
}

}  // namespace app
