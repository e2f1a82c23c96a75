#pragma once

#include <string_view>

namespace profiler {

/// The modules of the model as NVTX ranges, for a program that collects them (Nsight Systems):
/// it then shows the names that this program shows. Without one a range costs a load and a branch.
class NvtxScopes {
public:
    static void begin(std::string_view path) noexcept;
    static void end() noexcept;
};

}  // namespace profiler
