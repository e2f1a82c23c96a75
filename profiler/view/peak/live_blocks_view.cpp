#include "profiler/view/peak/live_blocks_view.h"

#include "profiler/analysis/step/block_origin.h"
#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

/// The own clock of a trace at the moment, and the changes up to then.
uint32_t rank_at(const LiveBlocksRequest& request, std::size_t trace) {
    const TimeMap& map = map_of(request.alignment, trace);
    const double own_ns = std::clamp(map.to_own(request.moment_ns), -0x1p62, 0x1p62);
    return request.steps[trace].blocks().highest_rank_at(std::llround(own_ns));
}

std::vector<uint32_t> live_blocks(const BlockHistory& history, uint32_t rank) {
    std::vector<uint32_t> live;
    const std::size_t count = history.allocated_before(rank);
    for (std::size_t block = 0; block < count; ++block) {
        if (history.is_live(block, rank)) live.push_back(static_cast<uint32_t>(block));
    }
    return live;
}

LiveBlocksView::Row live_row(const StepIndex& source, uint32_t block) {
    const Id<Allocation> id = source.blocks().allocation(block);
    const BlockOrigin origin = origin_of(source.trace(), source.storage_names(), {}, id);
    return {.allocation = id,
            .name = name_of_block(source, id),
            .module_path = std::string(origin.module_path),
            .category = origin.category,
            .size_bytes = source.blocks().size_bytes(block),
            .size_text = format_bytes(source.blocks().size_bytes(block))};
}

/// The bytes of a block that the other trace holds at its own moment.
int64_t held_bytes(const StepIndex& a, const StepIndex& b, uint32_t block, uint32_t rank) {
    const uint32_t found = b.labels().counterpart(a.labels(), block);
    if (found == BlockHistory::kNone || !b.blocks().is_live(found, rank)) return 0;
    return b.blocks().size_bytes(found);
}

void compare_rows(const LiveBlocksRequest& request, const std::vector<uint32_t>& live,
                  LiveBlocksView& view) {
    const StepIndex &a = request.steps[0], &b = request.steps[1];
    const uint32_t rank = rank_at(request, 1);
    int64_t gone_bytes = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
        const int64_t held = held_bytes(a, b, live[i], rank);
        gone_bytes += std::max<int64_t>(0, a.blocks().size_bytes(live[i]) - held);
        if (i >= view.rows.size()) continue;
        view.rows[i].other_text = held > 0 ? format_bytes(held) : std::string(kNoValue);
        view.rows[i].gone = held == 0;
    }
    view.gone_text = fmt::format("B does not hold {} of it", format_bytes(gone_bytes));
}

}  // namespace

LiveBlocksView build_live_blocks_view(const LiveBlocksRequest& request) {
    LiveBlocksView view;
    const std::size_t shown = request.shown;
    if (shown >= request.steps.size()) return view;
    const StepIndex& source = request.steps[shown];
    const BlockHistory& history = source.blocks();
    std::vector<uint32_t> live = live_blocks(history, rank_at(request, shown));
    std::stable_sort(live.begin(), live.end(), [&](uint32_t a, uint32_t b) {
        return history.size_bytes(a) > history.size_bytes(b);
    });
    int64_t total_bytes = 0, rest_bytes = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
        const int64_t size_bytes = history.size_bytes(live[i]);
        total_bytes += size_bytes;
        if (i >= LiveBlocksView::kMostRows) rest_bytes += size_bytes;
        if (i < LiveBlocksView::kMostRows) view.rows.push_back(live_row(source, live[i]));
    }
    const auto readout = read_timeline({.steps = request.steps, .alignment = request.alignment},
                                       shown, request.moment_ns);
    view.moment_text = readout.phase_text.empty()
                           ? readout.time_text
                           : fmt::format("{}, {}", readout.time_text, readout.phase_text);
    view.total_text = fmt::format("{} in {} {}", format_bytes(total_bytes),
                                  format_count(static_cast<int64_t>(live.size())),
                                  live.size() == 1 ? "block" : "blocks");
    if (live.size() > view.rows.size()) {
        view.rest_text =
            fmt::format("and {} smaller blocks, {}",
                        format_count(static_cast<int64_t>(live.size() - view.rows.size())),
                        format_bytes(rest_bytes));
    }
    if (request.difference && shown == 0 && request.steps.size() > 1) {
        compare_rows(request, live, view);
    }
    return view;
}

DataTable live_blocks_data(const LiveBlocksView& view) {
    DataTable table{.columns = {"tensor", "scope", "role", "size_bytes"},
                    .left_out = view.rest_text};
    for (const LiveBlocksView::Row& row : view.rows) {
        table.rows.push_back({row.name, row.module_path, name_of(row.category), row.size_bytes});
    }
    return table;
}

}  // namespace profiler
