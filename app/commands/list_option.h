#pragma once

#include "models/config/result.h"

#include <string>
#include <string_view>
#include <vector>

/// Options that take several items with commas between.
namespace app {

/// The items, each once, in the order in which they are named first. Errors: an empty item;
/// `option` is what the sentence calls the list: "--gpu".
models::Result<std::vector<std::string>> split_list(std::string_view option, std::string_view list);

}  // namespace app
