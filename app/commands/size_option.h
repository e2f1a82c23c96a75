#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <string_view>

namespace app {

/// Reads "14GiB", more than 0. Errors name the option.
models::Result<int64_t> parse_size(std::string_view option, std::string_view text);

}  // namespace app
