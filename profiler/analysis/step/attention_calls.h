#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Which kernel ran each call of scaled_dot_product_attention, and why no better one did.
namespace profiler {

/// Calls of one line that are alike, in the forward of one step.
struct AttentionSite {
    std::string line;     // "model.py:54 forward"; empty: no call stack
    std::string modules;  // "encoder.layer.*.attention"; empty: outside of modules
    std::string backend;  // "flash", "efficient", "cudnn", "math", ...: as torch names its op
    int64_t num_calls = 0;
    std::string reasons;  // why not flash attention, in torch's words; empty: not known, or it ran
};

/// Of the last recorded step with such calls, the most calls first.
std::vector<AttentionSite> attention_sites(const Trace& trace);

/// Why flash attention did not take this call, or one inside of it, or around it; empty: not known.
std::string_view flash_refusal_of(const Trace& trace, Id<Op> call);

}  // namespace profiler
