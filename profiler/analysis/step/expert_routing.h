#pragma once

#include "profiler/analysis/step/value_reads.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// How many tokens the experts of a mixture got on a simulated GPU, which knows no router's scores.
namespace profiler {

/// Of the layer with the most experts.
struct ExpertRouting {
    std::string routing;  // as models::parse_routing takes it: "balanced"
    int64_t num_tokens = 0;
    int64_t num_experts = 0;
    int64_t experts_per_token = 0;
    double tokens_per_expert = 0;  // on average; with balanced routing each gets as many
    /// A further step gave one expert more tokens than the others. -1: there was none.
    int64_t imbalanced_peak_bytes = -1;
    double imbalance = 1;    // so many times its share
    double most_tokens = 0;  // of that expert
};

/// None: no routing was assumed.
std::optional<ExpertRouting> expert_routing_of(const Trace& trace);

/// "if the first one gets 1.5 times as many, the peak is 13.4 GiB in place of 12.1 GiB"
std::string uneven_peak_text(double imbalance, int64_t peak_bytes, int64_t uneven_peak_bytes);

/// "Which experts get a token is not known: balanced routing was assumed at moe.py:31 forward
/// (topk, 24 times). 8 experts got 1,024 tokens each. If the first one gets 1.5 times as many, the
/// peak is 13.4 GiB in place of 12.1 GiB." Empty: no routing was assumed. `lines` are those of
/// value_read_lines, and `peak_bytes` the peak of the recorded steps.
std::string routing_sentence(const Trace& trace, const std::vector<ValueReadLine>& lines,
                             int64_t peak_bytes);

}  // namespace profiler
