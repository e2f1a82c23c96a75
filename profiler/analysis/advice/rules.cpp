#include "profiler/analysis/advice/rules.h"

#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace profiler {
namespace {

/// Less than that is noise: no remedy for it makes a step fit.
constexpr double kLeastShareOfFinding = 0.02;

/// From here on the next larger batch, or a longer sequence, does not fit.
constexpr double kShareThatIsShort = 0.9;

int64_t limit_of(const Evidence& evidence) {
    const int64_t limit_bytes = step_limit_bytes(evidence.trace);
    if (limit_bytes > 0 || !evidence.device.valid()) return limit_bytes;
    return evidence.trace.devices.get<&Device::total_bytes>(evidence.device);
}

/// A program that catches the error and goes on with a smaller batch was short of memory, too.
bool has_run_out(const Trace& trace) {
    if (ran_out_of_memory(trace)) return true;
    for (const Failure failure : trace.failures.rows()) {
        if (lacked_memory(failure)) return true;
    }
    return false;
}

/// Calls `visit` with each row of the table.
template <typename Visit>
void for_each_rule(const Visit& visit) {
    for (const std::span<const Rule> rules :
         {rules_of_program(), rules_of_activations(), rules_of_attention(), rules_of_loss(),
          rules_of_optimizer(), rules_of_ranks()}) {
        for (const Rule& rule : rules) visit(rule);
    }
}

/// Appends what a rule finds, without noise.
void ask(const Rule& rule, const Evidence& evidence, std::vector<Finding>& found) {
    const auto needed_bytes = static_cast<double>(evidence.allocated_bytes + evidence.asked_bytes);
    for (Finding& finding : rule.find(evidence)) {
        const auto size_bytes = static_cast<double>(finding.size_bytes);
        const bool is_noise = size_bytes < kLeastShareOfFinding * needed_bytes;
        if (finding.size_bytes <= 0 || is_noise) continue;
        finding.id = rule.id;
        found.push_back(std::move(finding));
    }
}

std::vector<Finding> largest_first(std::vector<Finding> found) {
    std::ranges::stable_sort(found, std::greater(), &Finding::size_bytes);
    return found;
}

}  // namespace

bool is_short_of_memory(const Evidence& evidence) {
    if (has_run_out(evidence.trace)) return true;
    const int64_t limit_bytes = limit_of(evidence);
    return limit_bytes > 0 && static_cast<double>(evidence.reserved_bytes) >=
                                  kShareThatIsShort * static_cast<double>(limit_bytes);
}

std::vector<Finding> find_unusual(const Evidence& evidence) {
    const bool is_short = is_short_of_memory(evidence);
    std::vector<Finding> found;
    for_each_rule([&](const Rule& rule) {
        if (rule.asked == Asked::kAlways || is_short) ask(rule, evidence, found);
    });
    return largest_first(std::move(found));
}

std::vector<Finding> find_unusual(const Evidence& evidence, std::string_view id) {
    std::vector<Finding> found;
    for_each_rule([&](const Rule& rule) {
        if (rule.id == id) ask(rule, evidence, found);
    });
    return largest_first(std::move(found));
}

}  // namespace profiler
