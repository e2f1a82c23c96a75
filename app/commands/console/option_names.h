#pragma once

#include "models/config/result.h"

#include <string>
#include <string_view>
#include <vector>

/// The command line's names for the fields that errors name. Layers below do not know options.
namespace app {

/// The sentence with the options of `fields` before its full stop:
/// "... choose a smaller batch." and batch_size -> "... choose a smaller batch (--batch)."
std::string with_options(std::string sentence, const std::vector<std::string_view>& fields);

}  // namespace app
