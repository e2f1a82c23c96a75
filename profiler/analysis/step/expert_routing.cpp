#include "profiler/analysis/step/expert_routing.h"

#include "models/config/routing.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

using models::Routing;

/// What was assumed at this line. None: it is another read.
std::optional<Routing> routing_of(const Trace& trace, const ValueRead& read) {
    constexpr std::string_view kEnd = " routing";
    std::string_view answer = trace.text(read.answer);
    if (read.kind != ValueReadKind::kRouting || !answer.ends_with(kEnd)) return std::nullopt;
    answer.remove_suffix(kEnd.size());
    const auto routing = models::parse_routing(answer);
    return routing ? std::optional(*routing) : std::nullopt;
}

/// ", the fullest 6,144"; empty for other routings. An expert gets no token twice, so the multiple
/// that was asked for may not be possible.
std::string fullest_text(const ExpertRouting& experts) {
    const auto routing = models::parse_routing(experts.routing);
    if (!routing || routing->kind != Routing::Kind::kWorst) return {};
    const double asked = experts.tokens_per_expert * routing->strength;
    const auto tokens = static_cast<double>(experts.num_tokens);
    return fmt::format(", the fullest {}{}", format_count(std::llround(std::min(tokens, asked))),
                       asked > tokens ? ", all that there are" : "");
}

}  // namespace

std::optional<ExpertRouting> expert_routing_of(const Trace& trace) {
    std::optional<ExpertRouting> found;
    for (const Id<ValueRead> id : trace.value_reads.ids()) {
        const ValueRead read = trace.value_reads[id];
        const auto routing = routing_of(trace, read);
        if (!routing) continue;
        const auto size_of = [](const auto& one) {
            return std::pair(one.num_experts, one.num_tokens);
        };
        if (found && size_of(read) <= size_of(*found)) continue;
        found = {.routing = to_text(*routing),
                 .num_tokens = read.num_tokens,
                 .num_experts = read.num_experts,
                 .experts_per_token = read.experts_per_token};
    }
    if (!found || found->num_experts <= 0) return found;
    const auto tokens = static_cast<double>(found->num_tokens);
    found->tokens_per_expert = tokens * static_cast<double>(found->experts_per_token) /
                               static_cast<double>(found->num_experts);
    found->imbalanced_peak_bytes = trace.run().imbalanced_peak_bytes;
    if (found->imbalanced_peak_bytes < 0) return found;
    found->imbalance = models::kImbalanced.strength;
    found->most_tokens = std::min(tokens, found->tokens_per_expert * found->imbalance);
    return found;
}

std::string uneven_peak_text(double imbalance, int64_t peak_bytes, int64_t uneven_peak_bytes) {
    const std::string even = format_bytes(peak_bytes);
    const std::string uneven = format_bytes(uneven_peak_bytes);
    return fmt::format("if the first one gets {:g} times as many, the peak is {}", imbalance,
                       even == uneven ? "the same" : uneven + " in place of " + even);
}

std::string routing_sentence(const Trace& trace, const std::vector<ValueReadLine>& lines,
                             int64_t peak_bytes) {
    std::string text = assumption_sentence(lines);
    const auto experts = expert_routing_of(trace);
    if (!experts || experts->num_experts <= 0) return text;
    text += fmt::format(" {} experts got {} tokens {}{}.", format_count(experts->num_experts),
                        format_count(std::llround(experts->tokens_per_expert)),
                        experts->routing == "balanced" ? "each" : "each on average",
                        fullest_text(*experts));
    if (experts->imbalanced_peak_bytes < 0) return text;
    return fmt::format("{} {}.", text,
                       capitalized(uneven_peak_text(experts->imbalance, peak_bytes,
                                                    experts->imbalanced_peak_bytes)));
}

}  // namespace profiler
