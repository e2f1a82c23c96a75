#pragma once

#include "models/config/result.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Lists with commas between their items.
namespace app {

inline void append_once(std::vector<std::string>& items, std::string item) {
    if (std::find(items.begin(), items.end(), item) == items.end()) {
        items.push_back(std::move(item));
    }
}

/// The items, each once, in the order of their first occurrence. Errors: an empty item. The message
/// calls the list `option`: "--gpu".
models::Result<std::vector<std::string>> split_list(std::string_view option, std::string_view list);

}  // namespace app
