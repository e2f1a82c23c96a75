#pragma once

#include "profiler/trace/printable.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What commands share that write JSON.
namespace app {

/// A document as it is printed and written. Names from files may hold bytes that are not UTF-8:
/// they are replaced rather than refused.
inline std::string json_text(const nlohmann::json& document) {
    using nlohmann::json;
    return profiler::printable_json(document.dump(2, ' ', false, json::error_handler_t::replace)) +
           "\n";
}

/// A value that not every row has.
template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}

/// A number that is 0 where it is not known.
template <typename T>
nlohmann::json known_size(T size) {
    return size > 0 ? nlohmann::json(size) : nlohmann::json();
}

/// A number that is -1 where it is not known.
inline nlohmann::json known_json(int64_t figure) {
    return figure < 0 ? nlohmann::json() : nlohmann::json(figure);
}
/// A text that is empty where it is not known.
inline nlohmann::json known_json(std::string_view text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace app
