#include "app/commands/options/number_option.h"

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

}  // namespace app
