#include "profiler/analysis/step/layer_path.h"

#include <fmt/format.h>

namespace profiler {

std::string_view layer_path_of(const Trace& trace, Id<ModulePath> module) {
    if (!module.valid()) return {};
    ModulePath row = trace.module_paths[module];
    if (row.layer < 0) return {};
    while (row.parent.valid() && row.parent < module) {  // damaged files may have cycles
        const ModulePath around = trace.module_paths[row.parent];
        if (around.layer != row.layer) break;
        module = row.parent;
        row = around;
    }
    return trace.text(row.path);
}

LayerPath split_layer_path(std::string_view path, std::string_view layer_path) {
    if (!layer_path.empty()) {
        const std::string_view inside = path_below(path, layer_path);
        if (inside.size() == path.size()) return {path, {}};
        return {layer_path, inside};
    }
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return {path, {}};
    return {path.substr(0, dot), path.substr(dot + 1)};
}

std::string any_layer_path(std::string_view path, std::string_view layer_path) {
    if (layer_path.empty()) return std::string(path);
    const auto [layer, inside] = split_layer_path(path, layer_path);
    const std::size_t dot = layer.rfind('.');
    std::string any =
        dot == std::string_view::npos ? "*" : fmt::format("{}.*", layer.substr(0, dot));
    if (!inside.empty()) any += fmt::format(".{}", inside);
    return any;
}

std::string_view path_below(std::string_view path, std::string_view around) {
    const bool lies_in = !around.empty() && path.size() > around.size() + 1 &&
                         path.starts_with(around) && path[around.size()] == '.';
    return lies_in ? path.substr(around.size() + 1) : path;
}

}  // namespace profiler
