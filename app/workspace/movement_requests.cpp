#include "app/workspace/movement_requests.h"

#include "app/workspace/frontier_plans.h"
#include "app/workspace/view_requests.h"

#include <utility>

namespace app {
namespace {

/// The card of the query; for logical ops of a trace without a card of its own, the usual one.
/// Null: the trace's own.
const profiler::Gpu* card_of(const MovementQuestion& question, const profiler::Trace& trace) {
    std::string id = question.query.gpu;
    const bool is_logical = question.query.ops == profiler::MovementOps::kLogical;
    if (id.empty() && is_logical && !profiler::gpu_of_trace(trace, *question.gpus)) {
        id = question.usual_gpu;
    }
    if (id.empty()) return nullptr;
    const auto gpu = profiler::find_gpu(*question.gpus, id);
    return gpu ? *gpu : nullptr;
}

}  // namespace

std::optional<Wanted<MovementQuestion>> wanted_movement(const SlotInputs& inputs) {
    const Selection& selection = inputs.selection;
    if (!inputs.movement.is_drawn || !selection.a || !selection.a->has_step) return std::nullopt;
    MovementQuestion question{.documents = {selection.a},
                              .query = inputs.movement,
                              .usual_gpu = inputs.plan_choice.gpu,
                              .gpus = &inputs.frontier_plans.gpus()};
    if (selection.b && selection.b->has_step) question.documents.push_back(selection.b);
    return Wanted<MovementQuestion>{.request = std::move(question),
                                    .documents = {selection.a, selection.b}};
}

profiler::MovementView build_movement(const MovementQuestion& question) {
    profiler::MovementRequest request{.sources = {},
                                      .ops = question.query.ops,
                                      .scope = question.query.scope,
                                      .sort_by = question.query.sort_by,
                                      .descending = question.query.descending};
    for (const DocumentPtr& document : question.documents) {
        const profiler::Trace& trace = *document->trace;
        profiler::PeaksOfTrace peaks =
            profiler::peaks_of_trace(trace, *question.gpus, card_of(question, trace));
        request.sources.push_back({.trace = &trace,
                                   .workload = document->step ? &*document->step : nullptr,
                                   .peaks = std::move(peaks.peaks),
                                   .peaks_fit_times = peaks.fit_its_times,
                                   .notes = std::move(peaks.notes)});
    }
    return profiler::build_movement_view(request);
}

}  // namespace app
