#include "profiler/view/memory/blocks_view.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"
#include "profiler/view/memory/block_layout.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace profiler {
namespace {

constexpr double kLabelColumns = 46;  // columns that a label needs at least
constexpr double kLabelPx = 10;       // and its height
constexpr double kHeadroom = 1.02;    // above the highest block
constexpr double kMostStrip = 0.5;    // of a very low plot, for the names of phases

/// Phases, steps and peak of the trace that is drawn, without columns.
TimelineTrace bands_of(const BlocksRequest& request) {
    TimelineRequest one = request.time;
    one.width_px = 1;
    TimelineView view = build_timeline_view(one);
    TimelineTrace bands = std::move(view.traces[request.shown]);
    for (auto& tops : bands.top_bytes) tops.clear();
    bands.allocated_bytes.clear();
    bands.reserved_bytes.clear();
    bands.edge_ns.clear();
    return bands;
}

double highest_allocated(const MemoryCurve& curve) {
    const auto bins = curve.sample(curve.start_ns(), curve.end_ns(), 1);
    return bins.empty() ? 0 : static_cast<double>(bins[0].allocated_bytes);
}

void add_minimap(const BlocksRequest& request, BlocksView& view) {
    const MemoryCurve& curve = request.time.steps[request.shown].curve();
    const TimeMap& map = map_of(request.time.alignment, request.shown);
    view.minimap_max_bytes = std::max(1.0, highest_allocated(curve));
    const double length_ns = request.all.end_ns - request.all.start_ns;
    if (!(length_ns > 0) || std::abs(request.all.start_ns) > 0x1p62 || length_ns > 0x1p62) return;
    const auto own = [&](int column) {
        const double share = static_cast<double>(column) / request.minimap_px;
        return int64_t{std::llround(map.to_own(request.all.start_ns + share * length_ns))};
    };
    for (int i = 0; i < request.minimap_px; ++i) {
        const int64_t start_ns = own(i), end_ns = std::max(own(i + 1), start_ns + 1);
        const auto bins = curve.sample(start_ns, end_ns, 1);
        view.minimap.push_back(bins.empty() ? 0 : static_cast<float>(bins[0].allocated_bytes));
    }
}

void add_shapes(const BlocksRequest& request, const BlockGroups& groups,
                const std::vector<uint32_t>& blocks, BlocksView& view) {
    const StepIndex& source = request.time.steps[request.shown];
    const BlockLabels& labels = source.labels();
    for (const uint32_t block : blocks) {
        BlockShape shape{
            .allocation = source.blocks().allocation(block),
            .size_bytes = source.blocks().size_bytes(block),
            .family = labels.family(block),
            .group = groups.color_of(block),
            .category = category_of_block(source.trace(), source.blocks().allocation(block))};
        if (request.order == BlockOrder::kAddress) {
            shape.size_bytes =
                source.trace().allocations.get<&Allocation::block_bytes>(shape.allocation);
        }
        view.shapes.push_back(std::move(shape));
    }
}

void find_ends(BlocksView& view) {
    for (BlockShape& shape : view.shapes) {
        shape.start_ns = std::numeric_limits<double>::max();
        shape.end_ns = std::numeric_limits<double>::lowest();
    }
    for (const BlockPiece& piece : view.pieces) {
        BlockShape& shape = view.shapes[piece.shape];
        shape.start_ns = std::min(shape.start_ns, piece.start_ns);
        shape.end_ns = std::max(shape.end_ns, piece.end_ns);
    }
}

/// Writes a name on the widest piece of each block that has room for one.
void add_labels(const StepIndex& source, const BlockCanvas& canvas, BlocksView& view) {
    std::vector<double> widest_ns(view.shapes.size(), kLabelColumns * canvas.column_ns());
    for (std::size_t i = 0; i < view.pieces.size(); ++i) {
        const BlockPiece& piece = view.pieces[i];
        const double length_ns = piece.end_ns - piece.start_ns;
        if (length_ns < widest_ns[piece.shape]) continue;
        widest_ns[piece.shape] = length_ns;
        view.shapes[piece.shape].label_piece = i + 1;  // 0: none
    }
    for (BlockShape& shape : view.shapes) {
        const bool high = static_cast<double>(shape.size_bytes) >= kLabelPx * canvas.pixel_bytes();
        if (shape.label_piece == 0 || !high) continue;
        --shape.label_piece;
        shape.label = fmt::format("{}  {}", name_of_block(source, shape.allocation),
                                  format_bytes(shape.size_bytes));
    }
}

/// The blocks of A of which B holds less than half, counted in bytes times time. It is for blocks
/// that are merged, which are drawn filled or pale as a whole.
std::vector<char> gone_blocks(const BlocksRequest& request) {
    const StepIndex &a = request.time.steps[0], &b = request.time.steps[1];
    const BlockLabels& own = a.labels();
    const BlockLabels& other = b.labels();
    const TimeMap& map = map_of(request.time.alignment, 1);
    std::vector<char> gone(a.blocks().size(), 1);
    for (std::size_t block = 0; block < gone.size(); ++block) {
        const uint32_t found = other.counterpart(own, block);
        if (found == BlockHistory::kNone) continue;
        const auto shared = [&](int64_t ns) { return map.to_shared(static_cast<double>(ns)); };
        // Blocks that are never freed end together, whatever their clocks say.
        const double end_ns = request.all.end_ns;
        const auto start_a = static_cast<double>(a.blocks().alloc_ns(block));
        const double start_b = shared(b.blocks().alloc_ns(found));
        const double end_a = std::min(end_ns, static_cast<double>(a.blocks().free_ns(block)));
        const double end_b = b.blocks().free_rank(found) == BlockHistory::kNone
                                 ? end_ns
                                 : shared(b.blocks().free_ns(found));
        const double common = std::min(end_a, end_b) - std::max(start_a, start_b);
        const double ratio =
            static_cast<double>(b.blocks().size_bytes(found)) /
            static_cast<double>(std::max<int64_t>(1, a.blocks().size_bytes(block)));
        const bool kept = common * std::min(1.0, ratio) * 2 >= end_a - start_a;
        // The times of two traces differ by more than a short life lasts.
        const bool both_short = end_b - start_b >= (end_a - start_a) / 2 && ratio >= 0.5;
        gone[block] = kept || both_short ? 0 : 1;
    }
    return gone;
}

/// For each shape of A: how much of it B holds, and when. Less than three columns of difference are
/// taken for none, because the times of two traces never match exactly.
void compare_shapes(const BlocksRequest& request, const BlockCanvas& canvas,
                    const std::vector<uint32_t>& blocks, BlocksView& view) {
    const StepIndex &a = request.time.steps[0], &b = request.time.steps[1];
    const BlockLabels& own = a.labels();
    const BlockLabels& other = b.labels();
    const TimeMap& map = map_of(request.time.alignment, 1);
    const double tolerance_ns = 3 * canvas.column_ns();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        BlockShape& shape = view.shapes[i];
        const uint32_t block = blocks[i], found = other.counterpart(own, block);
        shape.kept = 0;
        if (found == BlockHistory::kNone || shape.size_bytes <= 0) continue;
        shape.kept = std::min(1.0, static_cast<double>(b.blocks().size_bytes(found)) /
                                       static_cast<double>(a.blocks().size_bytes(block)));
        const auto shared = [&](int64_t ns) { return map.to_shared(static_cast<double>(ns)); };
        constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
        constexpr double kFar = std::numeric_limits<double>::max();
        const int64_t freed_ns = b.blocks().free_ns(found);
        const auto end_ns = static_cast<double>(a.blocks().free_ns(block));
        const auto start_ns = static_cast<double>(a.blocks().alloc_ns(block));
        shape.kept_start_ns = shared(b.blocks().alloc_ns(found));
        shape.kept_end_ns = freed_ns == kNever ? kFar : shared(freed_ns);
        if (shape.kept_start_ns <= start_ns + tolerance_ns) shape.kept_start_ns = -kFar;
        if (shape.kept_end_ns >= end_ns - tolerance_ns) shape.kept_end_ns = kFar;
    }
}

void find_used_groups(BlocksView& view) {
    const std::size_t num_colors = view.groups.size() / (view.difference ? 2 : 1);
    std::vector<char> used(num_colors, 0);
    for (const BlockShape& shape : view.shapes) used[shape.group] = 1;
    for (const MergedBlocks& merged : view.merged) {
        for (const MergedPart& part : merged.parts) used[part.group % num_colors] = 1;
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (used[i]) view.used_groups.push_back(static_cast<uint8_t>(i));
    }
}

std::string describe_merged(const BlockLayout& layout, double pixel_bytes) {
    if (layout.merged_count == 0) return {};
    const double least_px = layout.least_bytes / pixel_bytes;
    const std::string below = least_px < 1.5 ? "a pixel" : fmt::format("{:.0f} pixels", least_px);
    return fmt::format(
        "merged: {} {} below {}, at most {} at a time", format_count(layout.merged_count),
        layout.merged_count == 1 ? "block" : "blocks", below, format_bytes(layout.merged_bytes));
}

/// The same for A and B, so that a switch between them shows which one is higher.
double end_of_axis(const BlocksRequest& request) {
    const StepIndex& source = request.time.steps[request.shown];
    const double strip = static_cast<double>(request.phase_strip_px) /
                         static_cast<double>(std::max(request.height_px, 1));
    const double headroom = kHeadroom / (1 - std::clamp(strip, 0.0, kMostStrip));
    if (request.order == BlockOrder::kAddress) {
        return std::max(1.0, headroom * static_cast<double>(source.addresses().total_bytes()));
    }
    double highest = 1;
    for (const StepIndex& traced : request.time.steps.all()) {
        highest = std::max(highest, highest_allocated(traced.curve()));
    }
    return headroom * highest;
}

std::string life_text(const StepIndex& source, uint32_t block) {
    const int64_t start_ns = source.blocks().alloc_ns(block);
    const int64_t end_ns = source.blocks().free_ns(block);
    if (end_ns == std::numeric_limits<int64_t>::max()) {
        return fmt::format("from {} to the end", format_duration(start_ns));
    }
    return fmt::format("{}, from {} to {}", format_duration(end_ns - start_ns),
                       format_duration(start_ns), format_duration(end_ns));
}

std::string counterpart_text(const StepIndex& a, const StepIndex& b, uint32_t block) {
    const uint32_t found = b.labels().counterpart(a.labels(), block);
    if (found == BlockHistory::kNone) return "none";
    return fmt::format("{}, {}", format_bytes(b.blocks().size_bytes(found)), life_text(b, found));
}

}  // namespace

BlocksView build_blocks_view(const BlocksRequest& request) {
    BlocksView view;
    const std::size_t shown = request.shown;
    if (shown >= request.time.steps.size()) return view;
    const StepIndex& source = request.time.steps[shown];
    view.bands = bands_of(request);
    view.max_bytes = end_of_axis(request);
    view.has_layers = source.trace().run().num_layers > 0;
    add_minimap(request, view);
    const BlockCanvas canvas(request, source.blocks(), view.max_bytes);
    view.pixel_bytes = canvas.pixel_bytes();
    if (canvas.empty()) return view;
    BlockGroups groups(source, request.coloring);
    view.difference = request.difference && shown == 0 && request.time.steps.size() > 1;
    if (view.difference) groups.part(gone_blocks(request));
    BlockLayout layout = request.order == BlockOrder::kStack
                             ? lay_out_stack(canvas, source.blocks(), groups)
                             : lay_out_addresses(canvas, source, groups);
    view.groups = groups.all();
    view.pieces = std::move(layout.pieces);
    view.merged = std::move(layout.merged);
    view.merged_text = describe_merged(layout, canvas.pixel_bytes());
    add_shapes(request, groups, layout.blocks, view);
    find_ends(view);
    add_labels(source, canvas, view);
    if (view.difference) compare_shapes(request, canvas, layout.blocks, view);
    find_used_groups(view);
    return view;
}

BlockReadout read_block(const Steps& steps, std::size_t shown, Id<Allocation> allocation) {
    if (shown >= steps.size()) return {};
    const StepIndex& from = steps[shown];
    const uint32_t block = from.blocks().block_of(allocation);
    if (block == BlockHistory::kNone) return {};
    const Trace& trace = from.trace();
    const BlockOrigin origin = origin_of(trace, from.storage_names(), {}, allocation);
    BlockReadout readout{.title = name_of_block(from, allocation), .rows = {}};
    const auto add = [&](const char* label, std::string value) {
        if (!value.empty()) readout.rows.emplace_back(label, std::move(value));
    };
    add("size", format_exact_bytes(from.blocks().size_bytes(block)));
    add("module", std::string(origin.module_path));
    if (origin.maker.valid()) {
        add("made by", std::string(name_of_call(trace, origin.maker)));
    }
    const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(allocation);
    if (stack.valid() && !origin.name.empty()) add("line", from.sites().of(stack));
    add("category", std::string(label_of(origin.category)));
    add("lives", life_text(from, block));
    const Id<Op> freeing = trace.allocations.get<&Allocation::freeing_op>(allocation);
    if (freeing.valid()) add("freed by", std::string(name_of_call(trace, freeing)));
    if (steps.b && shown == 0) add("in B", counterpart_text(from, *steps.b, block));
    return readout;
}

uint64_t family_of(const StepIndex& source, Id<Allocation> allocation) {
    const uint32_t block = source.blocks().block_of(allocation);
    return block == BlockHistory::kNone ? 0 : source.labels().family(block);
}

namespace {

/// The own clock of a trace at the moment, and the changes up to then.
uint32_t rank_at(const LiveBlocksRequest& request, std::size_t trace) {
    const TimeMap& map = map_of(request.alignment, trace);
    const int64_t own_ns = to_clock(map.to_own(request.moment_ns));
    return request.steps[trace].blocks().highest_rank_at(own_ns);
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
    std::ranges::stable_sort(live, [&](uint32_t a, uint32_t b) {
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
