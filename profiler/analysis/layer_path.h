#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Module paths and the number of the layer in them.
namespace profiler {

/// A path around the number of its layer: "encoder.layer.3" and "attention.self". Outside of layers
/// (layer < 0): its first name and the rest. A path without the number stands whole in `layer`.
struct LayerPath {
    std::string_view layer;
    std::string_view inside;
};
LayerPath split_layer_path(std::string_view path, int64_t layer);

/// The same for all layers: "encoder.layer.*.attention.self". Outside of layers the path itself.
std::string any_layer_path(std::string_view path, int64_t layer);

/// "layer.3" of "encoder.layer.3" in "encoder"; the whole path if it does not lie in `around`.
std::string_view path_below(std::string_view path, std::string_view around);

}  // namespace profiler
