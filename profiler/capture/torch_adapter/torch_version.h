#pragma once

#include <torch/version.h>

#include <string_view>

namespace profiler {

/// Of the torch that this is built with: "2.11.0".
inline constexpr std::string_view kTorchVersion = TORCH_VERSION;

}  // namespace profiler
