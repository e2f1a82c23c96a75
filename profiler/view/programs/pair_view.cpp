#include "profiler/view/programs/pair_view.h"

#include "profiler/trace/units.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace profiler {
namespace {

using TwoMoments = std::array<std::optional<CategoryBytes>, 2>;

CategoryBytes bytes_at(const StepIndex& source, double time_ns) {
    return source.curve().at(std::llround(time_ns)).by_category;
}

TwoMoments at_own_peak(const PairRequest& request) {
    TwoMoments both;
    for (std::size_t i = 0; i < both.size(); ++i) both[i] = request.steps[i].peak().by_category;
    return both;
}

TwoMoments at_peak_of_a(const PairRequest& request) {
    const StepIndex &a = *request.steps.a, &b = *request.steps.b;
    const auto peak_ns = static_cast<double>(a.peak().time_ns);
    return {a.peak().by_category, bytes_at(b, request.alignment->second.to_own(peak_ns))};
}

/// Of the last step that ended its forward phase.
TwoMoments at_end_of_forward(const PairRequest& request) {
    TwoMoments both;
    for (std::size_t i = 0; i < both.size(); ++i) {
        const auto& phases = request.steps[i].trace().phases;
        for (std::size_t p = 0; p < phases.size(); ++p) {
            const Phase phase = phases[Id<Phase>(p)];
            if (phase.kind != PhaseKind::kForward || phase.end_ns <= phase.start_ns) continue;
            both[i] = bytes_at(request.steps[i], static_cast<double>(phase.end_ns));
        }
    }
    return both;
}

TwoMoments kept_for_backward(const PairRequest& request) {
    TwoMoments both;
    for (std::size_t i = 0; i < both.size(); ++i) {
        const Ledger& ledger = request.steps[i].ledger();
        if (ledger.rows.empty()) continue;
        both[i].emplace();
        for (const LedgerRow& row : ledger.rows) {
            (*both[i])[static_cast<std::size_t>(row.category)] += row.size_bytes;
        }
    }
    return both;
}

void add(const TwoMoments& both, std::string title, std::string explanation, PairView& view) {
    if (!both[0] || !both[1]) return;
    PairMoment moment{.title = std::move(title), .explanation = std::move(explanation)};
    for (std::size_t i = 0; i < both.size(); ++i) {
        PairMoment::Bar& bar = moment.bars[i];
        bar.stack = build_stack(*both[i]);
        for (const StackSegment& segment : bar.stack) bar.size_bytes += segment.size_bytes;
        bar.text = format_bytes(bar.size_bytes);
        view.max_bytes = std::max(view.max_bytes, bar.size_bytes);
    }
    moment.change = change_of(static_cast<double>(moment.bars[1].size_bytes),
                              static_cast<double>(moment.bars[0].size_bytes), Better::kLess);
    view.moments.push_back(std::move(moment));
}

}  // namespace

PairView build_pair_view(const PairRequest& request) {
    PairView view;
    for (std::size_t i = 0; i < view.is_predicted.size(); ++i) {
        view.is_predicted[i] = request.steps[i].trace().run().source == Source::kPredicted;
    }
    add(at_own_peak(request), "own peak", "Each trace at its own peak, wherever in the step it is.",
        view);
    add(at_peak_of_a(request), "at A's peak",
        "Both where A has its peak; B's time is aligned to A's.", view);
    add(at_end_of_forward(request), "end of forward",
        "Both when forward has ended and backward has not begun.", view);
    add(kept_for_backward(request), "kept for backward",
        "What autograd keeps from forward to backward: the totals of the ledger.", view);
    return view;
}

DataTable pair_data(const PairView& view) {
    DataTable table{.columns = {"moment", "trace", "role", "size_bytes"}};
    for (const PairMoment& moment : view.moments) {
        for (std::size_t i = 0; i < moment.bars.size(); ++i) {
            for (const StackSegment& segment : moment.bars[i].stack) {
                table.rows.push_back({moment.title, i == 0 ? "A" : "B", name_of(segment.category),
                                      segment.size_bytes});
            }
        }
    }
    return table;
}

}  // namespace profiler
