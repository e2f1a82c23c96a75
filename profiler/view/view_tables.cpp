#include "profiler/view/view_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace profiler {
namespace {

using Cell = DataTable::Cell;

template <typename T>
Cell optional_cell(const std::optional<T>& value) {
    return value ? Cell(*value) : Cell();
}

/// A figure that is known only above 0.
Cell known(int64_t value) { return value > 0 ? Cell(value) : Cell(); }
Cell known(double value) { return value > 0 ? Cell(value) : Cell(); }

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
    return all;
}

std::string key_of(LedgerColumn column) {
    switch (column) {
        case LedgerColumn::kTensor:
            return "tensor";
        case LedgerColumn::kModulePath:
            return "scope";
        case LedgerColumn::kMadeBy:
            return "made_by";
        case LedgerColumn::kShape:
            return "shape";
        case LedgerColumn::kDType:
            return "dtype";
        case LedgerColumn::kCategory:
            return "role";
        case LedgerColumn::kSize:
            return "size_bytes";
        case LedgerColumn::kShare:
            return "share";
        case LedgerColumn::kLifetime:
            return "lifetime_ns";
        case LedgerColumn::kSavedBy:
            return "saved_by";
        case LedgerColumn::kClosedForm:
            return "closed_form_bytes";
        case LedgerColumn::kOtherSize:
            return "other_size_bytes";
        case LedgerColumn::kDifference:
            return "difference_bytes";
    }
    return {};
}

Cell cell_of(const LedgerViewRow& row, LedgerColumn column) {
    switch (column) {
        case LedgerColumn::kTensor:
            return row.tensor;
        case LedgerColumn::kModulePath:
            return row.module_path;
        case LedgerColumn::kMadeBy:
            return row.made_by;
        case LedgerColumn::kShape:
            return row.shape;
        case LedgerColumn::kDType:
            return row.dtype;
        case LedgerColumn::kCategory:
            return std::string(name_of(row.category));
        case LedgerColumn::kSize:
            return row.size_bytes;
        case LedgerColumn::kShare:
            return row.share;
        case LedgerColumn::kLifetime:
            return row.lifetime_ns >= 0 ? Cell(row.lifetime_ns) : Cell();
        case LedgerColumn::kSavedBy:
            return row.saved_by;
        case LedgerColumn::kClosedForm:
            return optional_cell(row.closed_form_bytes);
        case LedgerColumn::kOtherSize:
            return row.other_bytes;
        case LedgerColumn::kDifference:
            return row.difference_bytes;
    }
    return {};
}

bool applies(const LedgerView& view, LedgerColumn column) {
    if (column == LedgerColumn::kClosedForm) return view.has_closed_form;
    const bool of_other = column == LedgerColumn::kOtherSize || column == LedgerColumn::kDifference;
    return !of_other || view.has_other;
}

void add_values(std::vector<Cell>& cells, const RangeRow& row, bool has_other) {
    cells.emplace_back(row.values[0]);
    if (!has_other) return;
    cells.emplace_back(row.values[1]);
    cells.emplace_back(row.difference);
}

const char* kind_of(ActivityKind kind) {
    switch (kind) {
        case ActivityKind::kOp:
            return "call";
        case ActivityKind::kKernel:
            return "kernel";
        case ActivityKind::kMemcpy:
            return "copy";
    }
    return "";
}

std::string module_of(const Trace& trace, ActivityId id) {
    if (id.kind != ActivityKind::kOp) return {};
    const Id<ModulePath> path = trace.ops.get<&Op::module_path>(Id<Op>(id.row));
    if (!path.valid()) return {};
    return std::string(trace.text(trace.module_paths.get<&ModulePath::path>(path)));
}

}  // namespace

DataTable compare_data(const Comparison& comparison, const CompareView& view) {
    DataTable table{.columns = {"recipe", "source", "device", "batch_size", "steps",
                                "peak_allocated_bytes", "peak_reserved_bytes"}};
    for (const Category category : view.categories) {
        table.columns.push_back(fmt::format("peak_{}_bytes", name_of(category)));
    }
    for (const char* name : {"kept_bytes", "step_time_ns", "throughput_sequences_per_s",
                             "max_batch_size", "best_batch_size", "best_throughput_sequences_per_s",
                             "predicted_for", "predicted_max_batch_size",
                             "predicted_best_throughput_sequences_per_s", "loss", "files"}) {
        table.columns.emplace_back(name);
    }
    for (const CompareColumn& shown : view.columns) {
        const ComparisonColumn& column = comparison.columns[shown.index];
        std::vector<Cell> row{shown.recipe,
                              std::string(name_of(column.source)),
                              column.device,
                              known(column.batch_size),
                              known(column.steps),
                              known(column.peak_allocated_bytes),
                              known(column.peak_reserved_bytes)};
        for (const Category category : view.categories) {
            row.emplace_back(column.peak_by_category[static_cast<std::size_t>(category)]);
        }
        row.emplace_back(column.saved_bytes);
        row.push_back(known(shown.sequences_per_s > 0 ? column.step_time_ns : 0));
        row.push_back(known(shown.sequences_per_s));
        row.push_back(optional_cell(shown.max_batch_size));
        row.push_back(optional_cell(column.best_batch_size));
        row.push_back(optional_cell(column.best_sequences_per_s));
        const PlannedRecipe planned = shown.planned.value_or(PlannedRecipe{});
        row.emplace_back(shown.planned ? Cell(view.planned_on) : Cell());
        row.push_back(optional_cell(planned.max_batch_size));
        row.push_back(known(planned.best_sequences_per_s));
        row.push_back(optional_cell(column.loss));
        row.emplace_back(joined(shown.files));
        table.rows.push_back(std::move(row));
    }
    return table;
}

DataTable throughput_data(const Comparison& comparison, const CompareView& view) {
    DataTable table{.columns = {"recipe", "kind", "batch_size", "outcome", "step_time_ns",
                                "step_time_min_ns", "step_time_max_ns",
                                "throughput_sequences_per_s", "peak_allocated_bytes"}};
    for (const CompareColumn& shown : view.columns) {
        for (const ThroughputPoint& point : comparison.columns[shown.index].curve) {
            const bool failed = point.out_of_memory;
            table.rows.push_back(
                {shown.recipe, std::string("measured"), point.batch_size,
                 std::string(name_of(failed ? SweepOutcome::kOutOfMemory : SweepOutcome::kOk)),
                 known(point.step_time_ns), known(point.step_time_min_ns),
                 known(point.step_time_max_ns), known(point.sequences_per_s),
                 known(point.peak_allocated_bytes)});
        }
        if (!shown.planned) continue;
        for (const CurvePoint& point : shown.planned->curve) {
            table.rows.push_back({shown.recipe, std::string("predicted"), point.batch_size,
                                  std::string(name_of(SweepOutcome::kOk)), Cell(), Cell(), Cell(),
                                  known(point.sequences_per_s), Cell()});
        }
    }
    return table;
}

DataTable ledger_data(const LedgerView& view, std::span<const LedgerColumn> columns) {
    std::vector<LedgerColumn> wanted(columns.begin(), columns.end());
    for (std::size_t i = 0; columns.empty() && i < kLedgerColumnTitles.size(); ++i) {
        wanted.push_back(static_cast<LedgerColumn>(i));
    }
    std::erase_if(wanted, [&](LedgerColumn column) { return !applies(view, column); });
    DataTable table;
    for (const LedgerColumn column : wanted) table.columns.push_back(key_of(column));
    for (const LedgerViewRow& row : view.rows) {
        auto& cells = table.rows.emplace_back();
        for (const LedgerColumn column : wanted) cells.push_back(cell_of(row, column));
    }
    return table;
}

DataTable live_blocks_data(const LiveBlocksView& view) {
    DataTable table{.columns = {"tensor", "scope", "role", "size_bytes"},
                    .left_out = view.rest_text};
    for (const LiveBlocksView::Row& row : view.rows) {
        table.rows.push_back(
            {row.name, row.module_path, std::string(name_of(row.category)), row.size_bytes});
    }
    return table;
}

DataTable range_data(const RangeView& view, const std::vector<RangeRow>& rows,
                     const std::string& unit) {
    DataTable table{.columns = {"name", "scope", "a_" + unit}};
    if (view.has_other) {
        table.columns.push_back("b_" + unit);
        table.columns.push_back("difference_" + unit);
    }
    for (const RangeRow& row : rows) {
        std::vector<Cell> cells{row.name, row.module_path};
        add_values(cells, row, view.has_other);
        table.rows.push_back(std::move(cells));
    }
    return table;
}

DataTable range_figures_data(const RangeView& view) {
    DataTable table{.columns = {"name", "unit", "a"}};
    if (view.has_other) table.columns.insert(table.columns.end(), {"b", "difference"});
    for (const RangeRow& row : view.figures) {
        std::vector<Cell> cells{row.name, std::string(row.name == "time" ? "ns" : "bytes")};
        add_values(cells, row, view.has_other);
        table.rows.push_back(std::move(cells));
    }
    return table;
}

DataTable planner_data(const PlannerView& view) {
    DataTable table{.columns = {"recipe", "gpu", "batch_size", "needed_bytes", "usable_bytes",
                                "step_time_ns", "throughput_sequences_per_s", "max_batch_size"}};
    for (const PlannerRecipe& recipe : view.recipes) {
        struct Figures {
            Cell bytes, step_time_ns, rate;
        };
        std::map<int64_t, Figures> by_batch;
        for (const MemoryPoint& point : recipe.memory) {
            by_batch[point.batch_size].bytes = point.needed_bytes;
        }
        for (const PlanPoint& point : recipe.speed) {
            by_batch[point.batch_size].step_time_ns = point.step_time_ns;
            by_batch[point.batch_size].rate = point.sequences_per_s;
        }
        for (const auto& [batch, figures] : by_batch) {
            table.rows.push_back({recipe.name, view.gpu, batch, figures.bytes, view.usable_bytes,
                                  figures.step_time_ns, figures.rate,
                                  optional_cell(recipe.max_batch)});
        }
    }
    return table;
}

DataTable activity_data(const ActivitySource& source, int64_t start_ns, int64_t end_ns,
                        std::size_t most) {
    DataTable table{
        .columns = {"lane", "kind", "class", "name", "scope", "start_ns", "duration_ns"}};
    std::size_t left_out = 0;
    const Trace& trace = *source.trace;
    for (const ActivityLane& lane : source.activity->lanes()) {
        for (const ActivityRow& row : lane.rows) {
            const std::size_t first = row.first_ending_after(start_ns);
            const std::size_t last = std::max(first, row.first_starting_at(end_ns));
            for (std::size_t i = first; i < last; ++i) {
                if (table.rows.size() >= most) {
                    left_out += last - i;
                    break;
                }
                const ActivityId id = row.ids[i];
                const auto activity_class = source.activity->class_of(trace, id);
                table.rows.push_back(
                    {lane.name, std::string(kind_of(id.kind)),
                     std::string(kActivityClassNames[static_cast<std::size_t>(activity_class)]),
                     std::string(name_of(trace, id)), module_of(trace, id), row.start_ns[i],
                     row.end_ns[i] - row.start_ns[i]});
            }
        }
    }
    if (left_out > 0) table.left_out = fmt::format("{} more rows", left_out);
    return table;
}

DataTable diagnostics_data(
    std::span<const std::pair<std::string, std::vector<DiagnosticItem>>> traces) {
    DataTable table{.columns = {"trace", "severity", "code", "count", "explanation"}};
    for (const auto& [name, items] : traces) {
        for (const DiagnosticItem& item : items) {
            table.rows.push_back({name, std::string(name_of(item.severity)), item.code, item.count,
                                  item.explanation});
        }
    }
    return table;
}

}  // namespace profiler
