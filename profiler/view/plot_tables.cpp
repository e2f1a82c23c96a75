#include "profiler/view/plot_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

using Cell = DataTable::Cell;

Cell whole(double value) { return static_cast<int64_t>(std::llround(value)); }

Cell column_title(const LayerView& view, std::size_t column) {
    return column == kOutside ? Cell() : Cell(view.columns[column].path);
}

void add_path_step(const PathStep& step, DataTable& table) {
    const Cell saved = step.is_planned ? Cell(step.saved_bytes) : Cell();
    const Cell lost = step.is_planned ? Cell(step.lost_ns) : Cell();
    table.rows.push_back({step.change, step.recipe, saved, lost});
}

}  // namespace

DataTable timeline_data(const TimelineTrace& trace) {
    DataTable table{.columns = {"start_ns", "end_ns", "allocated_bytes", "reserved_bytes"}};
    for (const Category category : kCategoryStackOrder) {
        table.columns.push_back(fmt::format("{}_bytes", name_of(category)));
    }
    for (std::size_t i = 0; i < trace.column_count(); ++i) {
        std::vector<Cell> row{whole(trace.edge_ns[i]), whole(trace.edge_ns[i + 1]),
                              whole(trace.allocated_bytes[i]), whole(trace.reserved_bytes[i])};
        double below = 0;
        for (const Category category : kCategoryStackOrder) {
            const auto& tops = trace.top_bytes[static_cast<std::size_t>(category)];
            const double top = i < tops.size() ? tops[i] : below;
            row.push_back(whole(top - below));
            below = top;
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

DataTable pair_data(const PairView& view) {
    DataTable table{.columns = {"moment", "trace", "role", "size_bytes"}};
    for (const PairMoment& moment : view.moments) {
        for (std::size_t i = 0; i < moment.bars.size(); ++i) {
            for (const StackSegment& segment : moment.bars[i].stack) {
                table.rows.push_back({moment.title, std::string(i == 0 ? "A" : "B"),
                                      std::string(name_of(segment.category)), segment.size_bytes});
            }
        }
    }
    return table;
}

DataTable ribbons_data(const LayerView& view) {
    DataTable table{.columns = {"tensor", "role", "made_in", "needed_in", "a_bytes", "b_bytes"}};
    for (const LayerRibbon& ribbon : view.ribbons) {
        table.rows.push_back({ribbon.name, std::string(name_of(ribbon.category)),
                              column_title(view, ribbon.producer),
                              column_title(view, ribbon.consumer), ribbon.bytes[0],
                              view.has_other ? Cell(ribbon.bytes[1]) : Cell()});
    }
    return table;
}

DataTable flame_data(const FlameView& view) {
    DataTable table{.columns = {"path", "depth", "a_bytes", "b_bytes", "a_count", "b_count"}};
    std::vector<int64_t> depths(view.nodes.size());  // parents come before their children
    for (std::size_t i = 0; i < view.nodes.size(); ++i) {
        const FlameNode& node = view.nodes[i];
        if (node.parent >= 0) depths[i] = depths[static_cast<std::size_t>(node.parent)] + 1;
        if (i >= kMaxCopiedNodes) continue;
        table.rows.push_back({path_of(view, i), depths[i], node.bytes[0],
                              view.has_second ? Cell(node.bytes[1]) : Cell(), node.count[0],
                              view.has_second ? Cell(node.count[1]) : Cell()});
    }
    if (view.nodes.size() > kMaxCopiedNodes) {
        table.left_out = fmt::format("{} more nodes", view.nodes.size() - kMaxCopiedNodes);
    }
    return table;
}

DataTable frontier_data(const RecipeFrontierView& view) {
    const bool is_memory = view.axis == FrontierAxis::kPeakMemory;
    DataTable table{.columns = {"recipe", "canonical_recipe", "gpu", "batch_size",
                                is_memory ? "peak_allocated_bytes" : "max_batch_size",
                                "throughput_sequences_per_s", "needed_bytes", "step_time_ns",
                                "fits", "on_frontier"}};
    for (const RecipeDot& dot : view.dots) {
        table.rows.push_back({dot.name, dot.recipe, view.gpu, view.batch_size, whole(dot.x), dot.y,
                              dot.needed_bytes, dot.step_time_ns,
                              std::string(dot.fits ? "yes" : "no"),
                              std::string(dot.is_on_frontier ? "yes" : "no")});
    }
    return table;
}

DataTable path_data(const RecipePath& path) {
    DataTable table{.columns = {"switch_to", "recipe", "saved_bytes", "lost_ns"}};
    for (const PathStep& step : path.steps) add_path_step(step, table);
    return table;
}

DataTable segments_data(const SegmentMapView& view) {
    DataTable table{.columns = {"address", "kind", "size_bytes", "free_bytes", "free_pieces",
                                "largest_free_bytes"}};
    for (const SegmentRow& row : view.rows) {
        table.rows.push_back({row.address_text, row.kind_text, row.size_bytes, row.free_bytes,
                              row.free_count, row.largest_free_bytes});
    }
    return table;
}

DataTable what_if_data(const WhatIfView& view) {
    DataTable table{.columns = {"figure", "recorded", "chosen"}};
    for (const WhatIfView::Figure& figure : view.figures) {
        table.rows.push_back({figure.label, figure.recorded_text, figure.chosen_text});
    }
    return table;
}

DataTable tried_data(const WhatIfView& view) {
    DataTable table{.columns = {"settings", "peak_reserved", "change", "fits"}};
    for (const WhatIfView::Tried& tried : view.tried) {
        table.rows.push_back({tried.settings_text, tried.reserved_text, tried.change_text,
                              std::string(tried.fits ? "yes" : "no")});
    }
    return table;
}

DataTable inspector_data(const InspectorView& view) {
    DataTable table{.columns = {"of", "what", "value"}};
    const auto add = [&](const std::string& of, const InspectorRows& rows) {
        for (const auto& [what, value] : rows) table.rows.push_back({of, what, value});
    };
    for (std::size_t i = 0; i < view.category.size(); ++i) {
        const std::string of = i == 0 ? "category in A" : "category in B";
        add(of, view.category[i].rows);
        add(of + ", largest at the peak", view.category[i].largest);
    }
    if (view.tensor) {
        const TensorCard& card = *view.tensor;
        add(card.title, card.rows);
        for (const LifeRow& row : card.life) {
            const bool are_two = row.values.size() > 1;
            for (std::size_t i = 0; i < row.values.size(); ++i) {
                add(!are_two ? card.title : card.title + (i == 0 ? " in A" : " in B"),
                    {{row.label, row.values[i]}});
            }
        }
        if (!card.fate.text.empty()) add(card.title, {{"A and B", card.fate.text}});
    }
    if (view.call) add(view.call->title, view.call->rows);
    return table;
}

}  // namespace profiler
