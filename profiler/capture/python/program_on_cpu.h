#pragma once

#include "profiler/capture/program_device.h"

#include <memory>

namespace profiler {

/// The CPU's memory as a program uses it: the blocks of torch's allocator, and storages that others
/// made.
std::unique_ptr<ProgramDevice> program_on_cpu();

}  // namespace profiler
