#pragma once

#include "app/workspace/blocks_query.h"
#include "app/workspace/time_axis.h"
#include "app/workspace/view_slot.h"
#include "profiler/analysis/comparison.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/ledger_view.h"
#include "profiler/view/timeline_view.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// From the state of the workspace to the requests of its slots (slots.h).
namespace app {

/// What the ledger shows and in which order.
struct LedgerQuery {
    std::string filter;
    profiler::LedgerColumn sort_by = profiler::LedgerColumn::kSize;
    bool descending = true;
    bool only_differences = false;
    bool compare = true;  // show B beside A, when there is a B

    friend bool operator==(const LedgerQuery&, const LedgerQuery&) = default;
};

/// What requests are made from.
struct SlotInputs {
    const std::vector<DocumentPtr>& documents;
    const Selection& selection;
    const TimeAxis& time;
    const LedgerQuery& ledger_query;
    const BlocksQuery& blocks;
};

/// All open documents. The request owns them, so that the old comparison stays on the screen while
/// a file is added or closed.
using CompareRequest = std::vector<DocumentPtr>;
struct CompareResult {
    profiler::Comparison comparison;
    profiler::CompareView view;
};
models::Result<CompareResult> build_comparison(const CompareRequest& documents);

std::optional<Wanted<CompareRequest>> wanted_comparison(const SlotInputs& inputs);
std::optional<Wanted<profiler::TimelineRequest>> wanted_timeline(const SlotInputs& inputs);
std::optional<Wanted<profiler::ActivityRequest>> wanted_kernels(const SlotInputs& inputs);
std::optional<Wanted<profiler::LedgerRequest>> wanted_ledger(const SlotInputs& inputs);

/// The timeline of A, and of B if it has a recorded step, in `window`. Has no sources when A holds
/// no recorded step, because the time axis is that of A.
profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window);

}  // namespace app
