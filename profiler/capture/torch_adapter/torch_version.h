#pragma once

#include <torch/version.h>

#include <string_view>

/// The version of torch that the recorder is compiled for: 2.8 or newer. Only this folder and
/// models/ops/torch_version.cpp ask for it (tests/tidy/torch_version_test.py).
namespace profiler {

/// 211 for torch 2.11.
#define TEMPOSCOPE_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

static_assert(TEMPOSCOPE_TORCH >= 208, "Temposcope needs torch 2.8 or newer");

/// Of the torch that this is built with: "2.11.0".
inline constexpr std::string_view kTorchVersion = TORCH_VERSION;

}  // namespace profiler
