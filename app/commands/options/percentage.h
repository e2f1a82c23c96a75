#pragma once

#include "models/config/result.h"

#include <string_view>

namespace app {

/// "2%", "2 %" or "2" as 0.02. `option` names the option in the error.
models::Result<double> parse_percentage(std::string_view text, std::string_view option);

}  // namespace app
