#include "app/commands/number_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace app {
namespace {

/// All of `text` as a number, whatever the locale.
template <typename Number>
bool parses(std::string_view text, Number& number) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

CLI::Validator whole_number() {
    return {[](std::string& text) {
                int64_t number = 0;
                if (!parses(text, number)) {
                    return fmt::format("'{}' is not a whole number of 64 bits", text);
                }
                text = fmt::to_string(number);
                return std::string();
            },
            ""};
}

CLI::Validator decimal_number() {
    return {[](std::string& text) {
                double number = 0;
                if (!parses(text, number) || !std::isfinite(number)) {
                    return fmt::format("'{}' is not a number", text);
                }
                return std::string();
            },
            ""};
}

}  // namespace app
