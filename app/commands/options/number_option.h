#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

/// Numbers as people write them. The library would take 08 for octal, 0x10 for 16, and what is too
/// large for the largest number there is.
namespace app {

/// Decimal digits, perhaps signed, within 64 bits; none: not that.
std::optional<int64_t> parse_whole_number(std::string_view text);
CLI::Validator whole_number();
/// "0.1", "1e-4".
CLI::Validator decimal_number();
/// Any text but none: an empty variable of a script is no wish to leave an option out.
CLI::Validator not_empty();

}  // namespace app
