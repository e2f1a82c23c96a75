#include "profiler/view/movement_view.h"

#include "profiler/trace/units.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/no_value.h"
#include "profiler/view/view_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

// The table of the Movement panel and of the command: the second half of movement_view.h.
namespace profiler {
namespace {

struct ColumnText {
    MovementColumn column;
    std::string_view title;
    std::string_view explanation;
};

constexpr std::array<ColumnText, kNumMovementColumns> kColumnTexts{{
    {MovementColumn::kOp, "op", ""},
    {MovementColumn::kModule, "module", "Inside its layer; of all layers together"},
    {MovementColumn::kPhase, "phase", ""},
    {MovementColumn::kClass, "class",
     "Ivanov's classes: contractions, normalizations (reductions), element-wise passes"},
    {MovementColumn::kCalls, "calls", "In one step"},
    {MovementColumn::kFlop, "flop", "In one step"},
    {MovementColumn::kRead, "words in", "Elements of all inputs, each once; in one step"},
    {MovementColumn::kWritten, "words out", "Elements of all outputs, each once; in one step"},
    {MovementColumn::kFlopPerByte, "flop/byte", "For each byte in or out"},
    {MovementColumn::kTime, "time", "Of kernels and copies, or of calls on a CPU; in one step"},
    {MovementColumn::kTimeShare, "of time", "Share of the time of all ops listed"},
    {MovementColumn::kPeak, "% of peak",
     "Flop/s, in percent of the card's peak of matrix products"},
    {MovementColumn::kBandwidth, "bandwidth",
     "Bytes of the words in and out, over the time. The memory saw this or more"},
    {MovementColumn::kMue, "MUE %",
     "Memory usage efficiency, (Q / D) (B / B^): Q are the bytes that have to move, D those that "
     "moved, B is their bandwidth, B^ the peak. D cancels, so MUE is the share of the time that "
     "the "
     "words of this row take at full bandwidth"},
    {MovementColumn::kLeastTime, "least time",
     "On the card: the longer of arithmetic at its peak and data at its bandwidth"},
}};

std::string separated(double value, int decimals) {
    if (!(std::abs(value) < 1e15)) return fmt::format("{:.3g}", value);  // of a damaged file
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    const std::size_t point = std::min(text.find('.'), text.size());
    if (point <= 3) return text;
    return format_count(std::stoll(text.substr(0, point))) + text.substr(point);
}

std::string format_ratio(const std::optional<double>& value) {
    if (!value) return kNoValue;
    return separated(*value, *value < 10 ? 2 : *value < 100 ? 1 : 0);
}

std::string format_share(const std::optional<double>& share) {
    return share ? fmt::format("{:.1f}", 100 * *share) : kNoValue;
}

std::string format_least(const MovementRates& rates) {
    if (!rates.memory_limit_ns && !rates.compute_limit_ns) return kNoValue;
    return format_duration(std::llround(
        std::max(rates.memory_limit_ns.value_or(0), rates.compute_limit_ns.value_or(0))));
}

std::string_view name_of_class(OpClass op_class) {
    static constexpr std::array<std::string_view, kOpClassNames.size()> kNames{
        "contraction", "normalization", "element-wise", "other"};
    return kNames[static_cast<std::size_t>(op_class)];
}

/// GPT-2's layers add their residuals themselves.
std::string module_text(const MovementRow& row) {
    return row.module.empty() && row.is_in_layer ? "(the layer)" : row.module;
}

void fill_cells(MovementViewRow& view) {
    const MovementRow& row = view.row;
    const MovementWork& work = row.work;
    const auto set = [&](MovementColumn column, std::string text) {
        view.cells[static_cast<std::size_t>(column)] = std::move(text);
    };
    set(MovementColumn::kOp, row.name);
    set(MovementColumn::kModule, module_text(row));
    set(MovementColumn::kPhase, row.phase ? std::string(name_of(*row.phase)) : "");
    set(MovementColumn::kClass, row.op_class ? std::string(name_of_class(*row.op_class)) : "");
    set(MovementColumn::kCalls, format_count(work.num_calls));
    set(MovementColumn::kFlop,
        work.flop > 0 ? format_amount(static_cast<double>(work.flop)) : kNoValue);
    set(MovementColumn::kRead, format_amount(static_cast<double>(work.words_read)));
    set(MovementColumn::kWritten, format_amount(static_cast<double>(work.words_written)));
    set(MovementColumn::kFlopPerByte, format_ratio(view.rates.flop_per_byte));
    set(MovementColumn::kTime, work.time_ns > 0 ? format_duration(work.time_ns) : kNoValue);
    set(MovementColumn::kTimeShare,
        work.time_ns > 0 ? fmt::format("{:.1f} %", 100 * view.time_share) : kNoValue);
    set(MovementColumn::kPeak, format_share(view.rates.peak_share));
    set(MovementColumn::kBandwidth,
        view.rates.bytes_per_s ? format_amount(*view.rates.bytes_per_s, "B/s") : kNoValue);
    set(MovementColumn::kMue, format_share(view.rates.mue));
    set(MovementColumn::kLeastTime, format_least(view.rates));
}

std::vector<MovementColumn> columns_by(MovementBy by) {
    using enum MovementColumn;
    std::vector<MovementColumn> columns;
    if (by == MovementBy::kOp) columns = {kPhase, kModule, kOp, kClass};
    if (by == MovementBy::kClass) columns = {kClass};
    if (by == MovementBy::kLayer) columns = {kOp};
    for (const MovementColumn column : {kCalls, kFlop, kRead, kWritten, kFlopPerByte, kTime,
                                        kTimeShare, kPeak, kBandwidth, kMue, kLeastTime}) {
        columns.push_back(column);
    }
    return columns;
}

bool is_text(MovementColumn column) { return column <= MovementColumn::kClass; }

}  // namespace

std::string_view title_of(MovementColumn column) {
    return kColumnTexts[static_cast<std::size_t>(column)].title;
}

std::string_view explanation_of(MovementColumn column) {
    return kColumnTexts[static_cast<std::size_t>(column)].explanation;
}

std::vector<MovementViewRow> movement_rows(const std::vector<MovementRow>& rows,
                                           const DevicePeaks& peaks, bool peaks_fit_times) {
    const auto all_ns = static_cast<double>(total_of(rows).time_ns);
    std::vector<MovementViewRow> views;
    views.reserve(rows.size());
    for (const MovementRow& row : rows) {
        MovementViewRow view;
        view.row = row;
        view.rates = rates_of(row.work, peaks, peaks_fit_times);
        if (all_ns > 0) view.time_share = static_cast<double>(row.work.time_ns) / all_ns;
        view.name = short_name(row.name);
        if (view.rates.mue && (view.rates.peak_share || row.work.flop == 0)) {
            view.is_mue_larger = *view.rates.mue >= view.rates.peak_share.value_or(0);
            view.is_peak_larger = !view.is_mue_larger;
        }
        fill_cells(view);
        views.push_back(std::move(view));
    }
    return views;
}

TextTable movement_table(const std::vector<MovementViewRow>& rows, MovementBy by) {
    const std::vector<MovementColumn> columns = columns_by(by);
    TextTable table;
    for (const MovementColumn column : columns) {
        const bool is_layer = by == MovementBy::kLayer && column == MovementColumn::kOp;
        table.columns.push_back({is_layer ? "layer" : std::string(title_of(column)),
                                 is_text(column) ? Align::kLeft : Align::kRight,
                                 std::string(explanation_of(column))});
    }
    for (const MovementViewRow& row : rows) {
        std::vector<std::string> cells;
        std::vector<Tone> tones;
        for (const MovementColumn column : columns) {
            cells.push_back(row.cells[static_cast<std::size_t>(column)]);
            const bool is_strong = (column == MovementColumn::kPeak && row.is_peak_larger) ||
                                   (column == MovementColumn::kMue && row.is_mue_larger);
            tones.push_back(is_strong ? Tone::kStrong : Tone::kNeutral);
        }
        table.rows.push_back(std::move(cells));
        table.tones.push_back(std::move(tones));
    }
    return table;
}

std::vector<MovementClassRow> movement_classes(const MovementReport& report,
                                               const models::Workload* workload,
                                               MovementScope scope) {
    const bool has_paper =
        workload != nullptr && scope == MovementScope::kLayers && is_workload_of_ivanov(*workload);
    std::vector<MovementClassRow> rows;
    for (const ClassShare& share : class_shares(report)) {
        MovementClassRow row;
        row.op_class = share.op_class;
        row.flop_share = share.flop;
        row.time_share = share.time;
        const auto index = static_cast<std::size_t>(share.op_class);
        if (has_paper && index < kIvanovFlopShares.size()) {
            row.ivanov_flop_share = kIvanovFlopShares[index];
            row.ivanov_time_share = kIvanovTimeShares[index];
        }
        rows.push_back(row);
    }
    return rows;
}

DataTable movement_data(const MovementTrace& movement) {
    const auto number = [](const auto& value) {
        return value ? DataTable::Cell(*value) : DataTable::Cell();
    };
    DataTable table;
    table.columns = {
        "phase",         "module",     "name",          "class", "calls",
        "flop",          "read_words", "written_words", "bytes", "flop_per_word",
        "flop_per_byte", "time_ns",    "peak_share",    "mue",   "bandwidth_bytes_per_s"};
    for (const MovementViewRow& view : movement.rows) {
        const MovementRow& row = view.row;
        const MovementWork& work = row.work;
        table.rows.push_back({row.phase ? std::string(name_of(*row.phase)) : std::string(),
                              row.module, row.name,
                              row.op_class ? std::string(name_of(*row.op_class)) : std::string(),
                              work.num_calls, work.flop, work.words_read, work.words_written,
                              static_cast<int64_t>(std::llround(work.bytes)),
                              number(view.rates.flop_per_word), number(view.rates.flop_per_byte),
                              work.time_ns > 0 ? DataTable::Cell(work.time_ns) : DataTable::Cell(),
                              number(view.rates.peak_share), number(view.rates.mue),
                              number(view.rates.bytes_per_s)});
    }
    return table;
}

TextTable movement_class_table(const std::vector<MovementClassRow>& classes) {
    const auto share = [](const std::optional<double>& value, int decimals) {
        return value ? fmt::format("{:.{}f} %", 100 * *value, decimals) : std::string(kNoValue);
    };
    const bool has_paper = std::any_of(classes.begin(), classes.end(), [](const auto& row) {
        return row.ivanov_flop_share.has_value();
    });
    TextTable table;
    table.columns = {{"class", Align::kLeft, {}},
                     {"of flop", Align::kRight, {}},
                     {"of time", Align::kRight, {}}};
    if (has_paper) {
        table.columns.push_back({"of flop, Ivanov", Align::kRight,
                                 "Table 1 of arXiv 2007.00072, a layer of BERT-large"});
        table.columns.push_back({"of time, Ivanov", Align::kRight, "PyTorch of 2020 on a V100"});
    }
    for (const MovementClassRow& row : classes) {
        std::vector<std::string> cells{std::string(name_of_class(row.op_class)),
                                       share(row.flop_share, 2), share(row.time_share, 1)};
        if (has_paper) {
            cells.push_back(share(row.ivanov_flop_share, 2));
            cells.push_back(share(row.ivanov_time_share, 1));
        }
        table.rows.push_back(std::move(cells));
    }
    return table;
}

}  // namespace profiler
