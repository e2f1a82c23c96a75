#pragma once

#include "models/config/result.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Values as people write them in options, read the same in every locale. Errors name the option.
namespace app {

/// Decimal digits with an optional sign, within 64 bits. 08 is 8; 0x10 is refused.
std::optional<int64_t> parse_whole_number(std::string_view text);
/// "0.1", "1e-4".
std::optional<double> parse_decimal_number(std::string_view text);
/// "2%", "2 %" or "2" as 0.02.
models::Result<double> parse_percentage(std::string_view text, std::string_view option);
/// "14GiB", more than 0.
models::Result<int64_t> parse_size(std::string_view option, std::string_view text);

inline void append_once(std::vector<std::string>& items, std::string item) {
    if (std::ranges::find(items, item) == items.end()) {
        items.push_back(std::move(item));
    }
}

/// The items between commas, each once, in the order of their first occurrence. Errors: an empty
/// item.
models::Result<std::vector<std::string>> split_list(std::string_view option, std::string_view list);

}  // namespace app
