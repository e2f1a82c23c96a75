#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <string_view>

/// Which device of a file with several its figures and pictures are of: the first row of `device`
/// that is no host (profiled_device).
namespace profiler {

/// Makes the device with this name, "cuda:1", the first one. Steps and phases get the numbers of
/// its events, and where classes were inferred, so are those of its blocks.
/// Errors: the trace "has no GPU 'cuda:7', only cuda:0, cuda:1".
models::Result<void> choose_device(Trace& trace, std::string_view name);

/// Exchanges two rows of `device` and all that refers to them.
void exchange_devices(Trace& trace, Id<Device> a, Id<Device> b);

}  // namespace profiler
