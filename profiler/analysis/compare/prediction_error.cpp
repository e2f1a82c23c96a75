#include "profiler/analysis/compare/prediction_error.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace profiler {
namespace {

/// The tensors that are live at a trace's peak.
struct Side {
    PeakReport peak;
    std::vector<UnmatchedTensor> tensors;
    int64_t requested_bytes = 0;
    int64_t block_bytes = 0;
};

/// "aten::bmm in encoder.layer.3.attention", for a tensor without a name.
std::string origin_of_call(const Trace& trace, Id<Op> op) {
    if (!op.valid()) return "outside ops";
    const Id<ModulePath> module_path = trace.ops.get<&Op::module_path>(op);
    const std::string_view name = name_of_call(trace, op);
    if (!module_path.valid()) return std::string(name);
    return fmt::format("{} in {}", name, path_of_module(trace, module_path));
}

Side side_of(const Trace& trace, bool is_predicted) {
    Side side{.peak = find_peak(trace)};
    const std::vector<StringId> names = names_of_storages(trace);
    for (const Id<Allocation> id : side.peak.live) {
        const Allocation row = trace.allocations[id];
        UnmatchedTensor tensor{.is_predicted = is_predicted, .size_bytes = row.requested_bytes};
        if (row.storage.valid()) {
            tensor.category = trace.storages.get<&Storage::category>(row.storage);
            tensor.name = trace.text(names[row.storage.index()]);
        }
        if (tensor.name.empty()) tensor.name = origin_of_call(trace, row.op);
        side.requested_bytes += row.requested_bytes;
        side.block_bytes += row.block_bytes;
        side.tensors.push_back(std::move(tensor));
    }
    return side;
}

/// Tensors with equal keys match. A temporary is named after the op that made it, and ops differ
/// between devices (sqrt, _foreach_sqrt), so temporaries match by size alone.
std::pair<std::string, int64_t> key_of(const UnmatchedTensor& tensor) {
    return {tensor.category == Category::kTemporary ? std::string() : tensor.name,
            tensor.size_bytes};
}

/// Removes the tensors that both steps hold.
void match(Side& predicted, Side& measured, PredictionError& result) {
    std::map<std::pair<std::string, int64_t>, int64_t>
        held;  // tensors of the measured step: how many
    for (const UnmatchedTensor& tensor : measured.tensors) ++held[key_of(tensor)];
    std::map<std::pair<std::string, int64_t>, int64_t> matched;
    std::erase_if(predicted.tensors, [&](const UnmatchedTensor& tensor) {
        const auto found = held.find(key_of(tensor));
        if (found == held.end() || found->second == 0) return false;
        --found->second;
        ++matched[found->first];
        result.matched_bytes += tensor.size_bytes;
        ++result.matched_count;
        return true;
    });
    std::erase_if(measured.tensors, [&](const UnmatchedTensor& tensor) {
        const auto found = matched.find(key_of(tensor));
        return found != matched.end() && found->second-- > 0;
    });
}

GapCause cause_of(Category category) {
    if (category == Category::kWorkspace) return GapCause::kWorkspace;
    if (category == Category::kGradient) return GapCause::kGradient;
    return category == Category::kTemporary ? GapCause::kTemporary : GapCause::kUnknown;
}

/// "forward"; empty: outside a phase.
std::string phase_of(const Trace& trace, const PeakReport& peak) {
    if (!peak.phase.valid()) return {};
    return std::string(name_of(trace.phases.get<&Phase::kind>(peak.phase)));
}

/// The phases of the peaks, if they differ: gradients, saved tensors and temporaries differ between
/// phases. Else empty.
std::string differing_phases(const std::string& predicted, const std::string& measured) {
    if (predicted.empty() || measured.empty() || predicted == measured) return {};
    return fmt::format(" (the predicted peak lies in {}, the measured peak in {})", predicted,
                       measured);
}

std::string make_sentence(const PredictionError& result, const std::string& phases) {
    const auto difference = static_cast<double>(result.predicted_bytes - result.measured_bytes);
    const double error = difference / static_cast<double>(result.measured_bytes);
    std::string text =
        fmt::format("predicted {}, measured {}", format_bytes(result.predicted_bytes),
                    format_bytes(result.measured_bytes));
    if (result.predicted_bytes == result.measured_bytes) return text + ": equal.";
    text += fmt::format(": {} too {}", format_percent(std::abs(error)),
                        difference > 0 ? "much" : "little");
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < result.gaps.size(); ++i) {
        const int64_t bytes = result.gaps[i].difference_bytes();
        if (bytes == 0) continue;
        parts.push_back(fmt::format("{} {}{}", kGapCauseNames[i], bytes > 0 ? "+" : "-",
                                    format_bytes(std::abs(bytes))));
    }
    return fmt::format("{}; {}{}.", text, fmt::join(parts, ", "), phases);
}

/// Why the two are different steps; empty if they are the same.
std::string why_not_equal(const Trace& predicted, const Trace& measured) {
    const auto a = workload_of(predicted);
    auto b = workload_of(measured);
    if (!a || !b) return "one of the traces does not name its workload";
    if (const auto differing = differences(*a, *b); !differing.empty()) {
        return fmt::format("they differ in {}", fmt::join(differing, ", "));
    }
    b->recipe.optimizer = a->recipe.optimizer;
    return models::layer_recipes_of(*a) == models::layer_recipes_of(*b) ? ""
                                                                        : "their recipes differ";
}

}  // namespace

models::Result<PredictionError> explain_prediction_error(const Trace& predicted,
                                                         const Trace& measured) {
    if (predicted.steps.empty() || measured.steps.empty()) {
        return models::fail(
            "A prediction is compared with a measured step, but one of the traces has no recorded "
            "step.");
    }
    if (const std::string why = why_not_equal(predicted, measured); !why.empty()) {
        return models::fail("The predicted and the measured step are not the same: {}.", why);
    }
    Side ours = side_of(predicted, true);
    Side theirs = side_of(measured, false);
    PredictionError result;
    result.of_reserved = !predicted.allocator_events.empty() && !measured.allocator_events.empty();
    const auto gap = [&](GapCause cause) -> Gap& {
        return result.gaps[static_cast<std::size_t>(cause)];
    };
    result.predicted_bytes = ours.peak.allocated_bytes;
    result.measured_bytes = theirs.peak.allocated_bytes;
    if (result.of_reserved) {
        result.predicted_bytes = ours.peak.reserved_bytes;
        result.measured_bytes = theirs.peak.reserved_bytes;
        gap(GapCause::kRounding) = {ours.block_bytes - ours.requested_bytes,
                                    theirs.block_bytes - theirs.requested_bytes};
        gap(GapCause::kFragmentation) = {ours.peak.reserved_bytes - ours.block_bytes,
                                         theirs.peak.reserved_bytes - theirs.block_bytes};
    }
    match(ours, theirs, result);
    for (const UnmatchedTensor& tensor : ours.tensors) {
        gap(cause_of(tensor.category)).predicted_bytes += tensor.size_bytes;
    }
    for (const UnmatchedTensor& tensor : theirs.tensors) {
        gap(cause_of(tensor.category)).measured_bytes += tensor.size_bytes;
    }
    result.tensors = std::move(ours.tensors);
    result.tensors.insert(result.tensors.end(), theirs.tensors.begin(), theirs.tensors.end());
    std::ranges::stable_sort(result.tensors, std::ranges::greater{}, &UnmatchedTensor::size_bytes);
    result.sentence = make_sentence(
        result, differing_phases(phase_of(predicted, ours.peak), phase_of(measured, theirs.peak)));
    return result;
}

}  // namespace profiler
