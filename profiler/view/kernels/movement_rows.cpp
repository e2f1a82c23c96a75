#include "profiler/view/kernels/movement_view.h"

#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

// The table of the Movement panel and of the command: the second half of movement_view.h.
namespace profiler {
namespace {

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

Cell least_time(const MovementRates& rates) {
    if (!rates.memory_limit_ns && !rates.compute_limit_ns) return {};
    return std::llround(
        std::max(rates.memory_limit_ns.value_or(0), rates.compute_limit_ns.value_or(0)));
}

Cell whole(const std::optional<double>& value) {
    return value ? Cell(std::llround(*value)) : Cell();
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

using MovementColumns = std::vector<TableColumn<MovementViewRow>>;

MovementColumns columns_of_op() {
    using Row = const MovementViewRow&;
    return MovementColumns{
        {"name", "op", Unit::kText, "", [](Row r) { return r.row.name; }},
        {"module", "module", Unit::kText, "Inside its layer; of all layers together",
         [](Row r) { return r.row.module; }, [](Row r) { return module_text(r.row); }},
        {"phase", "phase", Unit::kText, "",
         [](Row r) { return r.row.phase ? Cell(name_of(*r.row.phase)) : Cell(); },
         [](Row r) { return std::string(r.row.phase ? name_of(*r.row.phase) : ""); }},
        {"class", "class", Unit::kText,
         "Ivanov's classes: contractions, normalizations (reductions), element-wise passes",
         [](Row r) { return r.row.op_class ? Cell(name_of(*r.row.op_class)) : Cell(); },
         [](Row r) { return std::string(r.row.op_class ? name_of_class(*r.row.op_class) : ""); }}};
}

MovementColumns columns_of_work() {
    using Row = const MovementViewRow&;
    const auto amount = [](auto value) {
        return [value](Row r) { return format_amount(static_cast<double>(value(r))); };
    };
    const auto words_read = [](Row r) { return r.row.work.words_read; };
    const auto words_written = [](Row r) { return r.row.work.words_written; };
    return MovementColumns{
        {"calls", "calls", Unit::kCount, "In one step", [](Row r) { return r.row.work.num_calls; }},
        {"flop", "flop", Unit::kCount, "In one step", [](Row r) { return r.row.work.flop; },
         [](Row r) {
             const auto flop = static_cast<double>(r.row.work.flop);
             return flop > 0 ? format_amount(flop) : kNoValue;
         }},
        {"read_words", "words in", Unit::kCount, "Elements of all inputs, each once; in one step",
         words_read, amount(words_read)},
        {"written_words", "words out", Unit::kCount,
         "Elements of all outputs, each once; in one step", words_written, amount(words_written)},
        {"flop_per_byte", "flop/byte", Unit::kRate, "For each byte in or out",
         [](Row r) { return r.rates.flop_per_byte; },
         [](Row r) { return format_ratio(r.rates.flop_per_byte); }},
        {"time_ns", "time", Unit::kNanoseconds,
         "Of kernels and copies, or of calls on a CPU; in one step",
         [](Row r) { return known(r.row.work.time_ns); }},
        {"time_share", "of time", Unit::kShare, "Share of the time of all ops listed",
         [](Row r) { return r.row.work.time_ns > 0 ? Cell(r.time_share) : Cell(); },
         [](Row r) {
             const bool is_timed = r.row.work.time_ns > 0;
             return is_timed ? fmt::format("{:.1f} %", 100 * r.time_share) : kNoValue;
         }}};
}

MovementColumns columns_of_rates() {
    using Row = const MovementViewRow&;
    const auto column = [](const char* id, auto value) {
        return TableColumn<MovementViewRow>{.id = id, .value = value};
    };
    return MovementColumns{
        {"peak_share", "% of peak", Unit::kShare,
         "Flop/s, in percent of the card's peak of matrix products",
         [](Row r) { return r.rates.peak_share; },
         [](Row r) { return format_share(r.rates.peak_share); }},
        {"bandwidth_bytes_per_s", "bandwidth", Unit::kBytesPerSecond,
         "Bytes of the words in and out, over the time. The memory saw this or more",
         [](Row r) { return r.rates.bytes_per_s; },
         [](Row r) {
             return r.rates.bytes_per_s ? format_amount(*r.rates.bytes_per_s, "B/s") : kNoValue;
         }},
        {"mue", "MUE %", Unit::kShare,
         "Memory usage efficiency, (Q / D) (B / B^): Q are the bytes that have to move, D "
         "those that moved, B is their bandwidth, B^ the peak. D cancels, so MUE is the share "
         "of the time that the words of this row take at full bandwidth",
         [](Row r) { return r.rates.mue; }, [](Row r) { return format_share(r.rates.mue); }},
        {"least_ns", "least time", Unit::kNanoseconds,
         "On the card: the longer of arithmetic at its peak and data at its bandwidth",
         [](Row r) { return least_time(r.rates); }},
        column("bytes", [](Row r) { return std::llround(r.row.work.bytes); }),
        column("flop_per_word", [](Row r) { return r.rates.flop_per_word; }),
        column("flop_per_s", [](Row r) { return r.rates.flop_per_s; }),
        column("compute_limit_ns", [](Row r) { return whole(r.rates.compute_limit_ns); }),
        column("memory_limit_ns", [](Row r) { return whole(r.rates.memory_limit_ns); }),
        column("bound", [](Row r) {
            const auto is_memory_bound = r.rates.is_memory_bound();
            return !is_memory_bound ? Cell() : *is_memory_bound ? "memory" : "compute";
        })};
}

void fill_cells(MovementViewRow& view) {
    for (std::size_t i = 0; i < kNumMovementColumns; ++i) {
        view.cells[i] = text_of(movement_columns()[i], view);
    }
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

}  // namespace

const MovementColumns& movement_columns() {
    static const MovementColumns kColumns =
        join<MovementViewRow>({columns_of_op(), columns_of_work(), columns_of_rates()});
    return kColumns;
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
        const TableColumn<MovementViewRow>& shown = table_column(column);
        table.columns.push_back({is_layer ? "layer" : shown.title,
                                 shown.unit == Unit::kText ? Align::kLeft : Align::kRight,
                                 shown.explanation});
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
    return data_table(
        pick(movement_columns(), {"phase", "module", "name", "class", "calls", "flop", "read_words",
                                  "written_words", "bytes", "flop_per_word", "flop_per_byte",
                                  "time_ns", "peak_share", "mue", "bandwidth_bytes_per_s"}),
        movement.rows);
}

TextTable movement_class_table(const std::vector<MovementClassRow>& classes) {
    const auto share = [](const std::optional<double>& value, int decimals) {
        return value ? fmt::format("{:.{}f} %", 100 * *value, decimals) : std::string(kNoValue);
    };
    const bool has_paper = std::any_of(classes.begin(), classes.end(), [](const auto& row) {
        return row.ivanov_flop_share.has_value();
    });
    TextTable table;
    table.columns = {
        {"class", Align::kLeft}, {"of flop", Align::kRight}, {"of time", Align::kRight}};
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
