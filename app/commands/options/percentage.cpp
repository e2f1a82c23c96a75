#include "app/commands/options/percentage.h"

#include <charconv>
#include <cmath>

namespace app {

models::Result<double> parse_percentage(std::string_view text, std::string_view option) {
    double percent = 0;
    const char* end = text.data() + text.size();
    // from_chars reads the same in every locale.
    const auto [rest, error] = std::from_chars(text.data(), end, percent);
    std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    const bool valid = error == std::errc() && std::isfinite(percent) && percent >= 0 &&
                       (unit.empty() || unit == "%");
    if (!valid) return models::fail("{} takes a percentage such as 2%, not '{}'.", option, text);
    return percent / 100;
}

}  // namespace app
