#pragma once

#include <nlohmann/json.hpp>

#include <optional>

/// Values that not every row has, as JSON.
namespace app {

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace app
