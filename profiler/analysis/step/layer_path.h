#pragma once

#include "profiler/trace/trace.h"

#include <string>
#include <string_view>

/// Module paths and the layer in them.
namespace profiler {

/// The module that is the layer around a module: "encoder.layer.3". Empty outside of layers.
std::string_view layer_path_of(const Trace& trace, Id<ModulePath> module);

/// A path around its layer: "encoder.layer.3" and "attention.self". Outside of layers (`layer_path`
/// empty): its first name and the rest. A path that does not lie in that layer stands whole in
/// `layer`.
struct LayerPath {
    std::string_view layer;
    std::string_view inside;
};
LayerPath split_layer_path(std::string_view path, std::string_view layer_path);

/// The same for all layers of a stack: "encoder.layer.*.attention.self". Outside of layers the path
/// itself.
std::string any_layer_path(std::string_view path, std::string_view layer_path);

/// "layer.3" of "encoder.layer.3" in "encoder"; the whole path if it does not lie in `around`.
std::string_view path_below(std::string_view path, std::string_view around);

}  // namespace profiler
