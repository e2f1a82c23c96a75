#include "app/commands/options/number_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace app {
namespace {

/// All of `text` as a number, whatever the locale.
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

CLI::Validator whole_number() {
    return {[](std::string& text) {
                const auto number = parse_whole_number(text);
                if (!number) return fmt::format("'{}' is not a whole number of 64 bits", text);
                text = fmt::to_string(*number);
                return std::string();
            },
            ""};
}

CLI::Validator decimal_number() {
    return {[](std::string& text) {
                const auto number = parse<double>(text);
                if (!number || !std::isfinite(*number)) {
                    return fmt::format("'{}' is not a number", text);
                }
                return std::string();
            },
            ""};
}

CLI::Validator not_empty() {
    return {[](std::string& text) {
                return text.empty() ? std::string("is empty: leave it out or give a value") : "";
            },
            ""};
}

}  // namespace app
