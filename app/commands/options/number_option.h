#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// Reads numbers as people write them, the same in every locale. Other text gives nullopt.
namespace app {

/// Decimal digits with an optional sign, within 64 bits. 08 is 8; 0x10 is refused.
std::optional<int64_t> parse_whole_number(std::string_view text);
/// "0.1", "1e-4".
std::optional<double> parse_decimal_number(std::string_view text);

}  // namespace app
