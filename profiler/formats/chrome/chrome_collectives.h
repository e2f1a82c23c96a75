#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <unordered_map>

namespace profiler {

/// What a Chrome trace says about collectives: arguments of the op and of the kernel, under the
/// names of the PyTorch profiler, which HTA and kineto_event.cpp read.
class ChromeCollectives {
public:
    explicit ChromeCollectives(const Trace& trace);

    /// `, "Collective name": "all_reduce", ...`; empty for others.
    std::string arguments_of(Id<Op> op) const { return find(by_op_, op.value); }
    std::string arguments_of(Id<Kernel> kernel) const { return find(by_kernel_, kernel.value); }

private:
    using Rows = std::unordered_map<int32_t, Id<Collective>>;
    std::string find(const Rows& rows, int32_t row) const;

    const Trace& trace_;
    Rows by_op_, by_kernel_;
};

}  // namespace profiler
