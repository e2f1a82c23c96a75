#include "profiler/analysis/layer_path.h"

#include <fmt/format.h>

#include <algorithm>

namespace profiler {

LayerPath split_layer_path(std::string_view path, int64_t layer) {
    const std::string number = std::to_string(layer);
    std::size_t start = 0;
    while (start <= path.size()) {
        const std::size_t end = std::min(path.find('.', start), path.size());
        if (layer < 0 || path.substr(start, end - start) == number) {
            return {path.substr(0, end), end < path.size() ? path.substr(end + 1) : ""};
        }
        start = end + 1;
    }
    return {path, {}};
}

std::string any_layer_path(std::string_view path, int64_t layer) {
    if (layer < 0) return std::string(path);
    const auto [before, inside] = split_layer_path(path, layer);
    const std::size_t dot = before.rfind('.');
    std::string any =
        dot == std::string_view::npos ? "*" : fmt::format("{}.*", before.substr(0, dot));
    if (!inside.empty()) any += fmt::format(".{}", inside);
    return any;
}

std::string_view path_below(std::string_view path, std::string_view around) {
    const bool lies_in = !around.empty() && path.size() > around.size() + 1 &&
                         path.starts_with(around) && path[around.size()] == '.';
    return lies_in ? path.substr(around.size() + 1) : path;
}

}  // namespace profiler
