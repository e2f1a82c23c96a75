#include "profiler/view/kernels/movement_view.h"

#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/kernels_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <tuple>

namespace profiler {
namespace {

/// "aten::addmm" -> "addmm".
std::string_view without_namespace(std::string_view name) {
    return name.substr(std::min(name.rfind(':') + 1, name.size()));
}

/// "LayerNorm" and "layer_norm" are one word.
std::string letters_of(std::string_view text) {
    std::string letters;
    for (const char c : text) {
        if (std::isalnum(static_cast<unsigned char>(c))) {
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
    }
    return letters;
}

/// The last part of a path that begins before `end`.
std::size_t begin_of_last_part(std::string_view path, std::size_t end) {
    const std::size_t dot = end == 0 ? path.npos : path.rfind('.', end - 1);
    return dot == path.npos ? 0 : dot + 1;
}

}  // namespace

void OpLabels::add(const MovementRow& row) {
    const bool is_logical = !row.call.valid();
    if (!seen_.emplace(row.module, is_logical ? row.name : std::string()).second) return;
    if (is_logical) {
        ++logical_names_[row.name];
        return;
    }
    for (std::size_t begin = row.module.size(); begin > 0;) {
        begin = begin_of_last_part(row.module, begin == row.module.size() ? begin : begin - 1);
        ++tails_[row.module.substr(begin)];
    }
}

/// The shortest tail of a module that no other module has; the whole path if there is none.
std::string_view OpLabels::place_of(std::string_view module) const {
    for (std::size_t begin = module.size(); begin > 0;) {
        begin = begin_of_last_part(module, begin == module.size() ? begin : begin - 1);
        const auto found = tails_.find(module.substr(begin));
        if (found == tails_.end() || found->second == 1) return module.substr(begin);
    }
    return module;
}

std::string OpLabels::label_of(const MovementRow& row) const {
    const std::string_view name = without_namespace(row.name);
    if (!row.call.valid()) {
        const auto found = logical_names_.find(row.name);
        const bool is_ambiguous = found != logical_names_.end() && found->second > 1;
        return is_ambiguous ? fmt::format("{} {}", row.module, name) : std::string(name);
    }
    std::string_view place = place_of(row.module);
    const std::size_t last = begin_of_last_part(place, place.size());
    if (letters_of(name).find(letters_of(place.substr(last))) != std::string::npos) {
        place = place.substr(0, last == 0 ? 0 : last - 1);
    }
    return place.empty() ? std::string(name) : fmt::format("{} {}", place, name);
}

namespace {

constexpr double kGutterStep = 0.3;  // from the least intensity to the dots without arithmetic
constexpr double kRoofHeadroom = 6;  // above the roof

MovementReport report_of(const Trace& trace, const std::optional<models::Workload>& workload,
                         const MovementRequest& request) {
    if (request.ops == MovementOps::kRun) return movement_of(trace, request.scope);
    return workload ? logical_movement(*workload) : MovementReport();
}

double number_in(const MovementViewRow& view, MovementColumn column) {
    const bool is_time = column == MovementColumn::kTime || column == MovementColumn::kTimeShare;
    const int64_t time_ns = view.row.work.time_ns;
    if (is_time && time_ns > 0) return static_cast<double>(time_ns);
    if (is_time || column == MovementColumn::kLeastTime) {
        return std::max(view.rates.compute_limit_ns.value_or(0),
                        view.rates.memory_limit_ns.value_or(0));
    }
    const Cell value = table_column(column).value(view);
    const auto* count = std::get_if<int64_t>(&value);
    const auto* number = std::get_if<double>(&value);
    return count ? static_cast<double>(*count) : number ? *number : 0;
}

/// Texts by the alphabet, phases in the order in which ops ran, numbers by size.
void sort_rows(std::vector<MovementViewRow>& rows, MovementColumn by, bool descending) {
    const auto text_in = [&](const MovementViewRow& row) -> const std::string& {
        return row.cells[static_cast<std::size_t>(by)];
    };
    const auto sort = [&](const auto& less) {
        std::ranges::stable_sort(rows, [&](const MovementViewRow& a, const MovementViewRow& b) {
            return descending ? less(b, a) : less(a, b);
        });
    };
    if (by == MovementColumn::kPhase) {
        if (descending) std::ranges::reverse(rows);
    } else if (by <= MovementColumn::kClass) {
        sort([&](const auto& a, const auto& b) { return text_in(a) < text_in(b); });
    } else {
        sort([&](const auto& a, const auto& b) { return number_in(a, by) < number_in(b, by); });
    }
}

/// Time, or without times the least time.
double weight_of(const MovementViewRow& row) { return number_in(row, MovementColumn::kTime); }

/// Where a row stands. In a view without times it stands at its limit; beside rows with times, a
/// row without one stands nowhere.
MovementDot dot_of(const MovementViewRow& row, const DevicePeaks& peaks, double gutter_x,
                   bool has_times) {
    MovementDot dot;
    const MovementRates& rates = row.rates;
    dot.has_arithmetic = rates.flop_per_byte.has_value();
    dot.x = rates.flop_per_byte.value_or(gutter_x);
    const bool is_timed = row.row.work.time_ns > 0;
    if (has_times && !is_timed) return dot;
    if (dot.has_arithmetic) {
        dot.y = is_timed ? rates.flop_per_s.value_or(0) : roof_at(peaks, dot.x);
    } else {
        const double bytes_per_s = is_timed ? rates.bytes_per_s.value_or(0) : peaks.bytes_per_s;
        dot.y = bytes_per_s * gutter_x;
    }
    return dot;
}

std::vector<MovementDot> dots_of(const std::vector<MovementViewRow>& rows, const DevicePeaks& peaks,
                                 double gutter_x, double most_weight, bool has_times) {
    std::vector<MovementDot> dots;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        MovementDot dot = dot_of(rows[i], peaks, gutter_x, has_times);
        dot.row = i;
        if (!(dot.y > 0) || !std::isfinite(dot.y) || !std::isfinite(dot.x)) continue;
        if (most_weight > 0) dot.radius = std::sqrt(weight_of(rows[i]) / most_weight);
        dots.push_back(dot);
    }
    std::ranges::stable_sort(dots, std::ranges::greater{}, &MovementDot::radius);
    return dots;
}

using Key = std::tuple<std::optional<PhaseKind>, std::string, std::string>;

/// First by the op; then what is left of a module and a class, if it is one of each.
void join(MovementTrace& a, const MovementTrace& b) {
    const auto match = [&](const auto& key_of) {
        std::map<Key, std::vector<std::size_t>> others;
        std::map<Key, std::size_t> count;
        std::vector<char> taken(b.dots.size(), 0);
        for (const MovementDot& dot : a.dots) {
            if (dot.other) taken[*dot.other] = 1;
            if (!dot.other) ++count[key_of(a.rows[dot.row])];
        }
        for (std::size_t i = 0; i < b.dots.size(); ++i) {
            if (!taken[i]) others[key_of(b.rows[b.dots[i].row])].push_back(i);
        }
        for (MovementDot& dot : a.dots) {
            if (dot.other) continue;
            const Key key = key_of(a.rows[dot.row]);
            const auto found = others.find(key);
            if (found == others.end() || found->second.size() != 1 || count[key] != 1) continue;
            dot.other = found->second.front();
        }
    };
    match([](const MovementViewRow& r) { return Key{r.row.phase, r.row.module, r.row.name}; });
    match([](const MovementViewRow& r) {
        const int op_class = r.row.op_class ? static_cast<int>(*r.row.op_class) : -1;
        // A copy does not become a pass with arithmetic.
        return Key{r.row.phase, r.row.module, fmt::format("{} {}", op_class, r.row.work.flop > 0)};
    });
}

double decade_below(double value) { return std::pow(10.0, std::floor(std::log10(value))); }
double decade_above(double value) { return std::pow(10.0, std::ceil(std::log10(value))); }

/// Labels such as "0.1", "10", "1 T": `unit` follows the prefix of thousands.
std::vector<Tick> decade_ticks(double first, double last, std::string_view unit) {
    constexpr std::array<std::string_view, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
    std::vector<Tick> ticks;
    if (!(first > 0) || !(last < 1e18)) return ticks;
    for (double value = decade_above(first * 0.999); value <= last; value *= 10) {
        std::size_t prefix = 0;
        double number = value;
        while (!unit.empty() && number >= 999.5 && prefix + 1 < kPrefixes.size()) {
            number /= 1000;
            ++prefix;
        }
        std::string label = fmt::format("{:.6g}", number);
        if (!unit.empty()) label += fmt::format(" {}{}", kPrefixes[prefix], unit);
        ticks.push_back({value, std::move(label)});
    }
    return ticks;
}

/// The range of intensities, and the place of dots without arithmetic.
void set_x_axis(MovementView& view) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const MovementTrace& trace : view.traces) {
        for (const MovementViewRow& row : trace.rows) {
            const auto& x = row.rates.flop_per_byte;
            view.has_gutter |= !x.has_value();
            if (!x) continue;
            least = std::min(least, *x);
            most = std::max(most, *x);
        }
    }
    if (most <= 0) least = most = 1;
    if (view.ridge > 0) most = std::max(most, 2 * view.ridge);
    view.first_x = decade_below(least * 0.9);
    view.last_x = decade_above(most * 1.3);
    view.gutter_x = view.first_x * kGutterStep;
    const double least_tick = view.first_x;
    if (view.has_gutter) view.first_x = view.gutter_x * kGutterStep;
    view.x_ticks = decade_ticks(least_tick, view.last_x, "");
}

void set_y_axis(MovementView& view) {
    double least = std::numeric_limits<double>::infinity(), most = view.peaks.flop_per_s;
    for (const MovementTrace& trace : view.traces) {
        for (const MovementDot& dot : trace.dots) {
            least = std::min(least, dot.y);
            most = std::max(most, dot.y);
        }
    }
    if (most <= 0 || least <= 0 || !std::isfinite(least)) return;
    view.first_y = least / 2.5;
    view.last_y = most * kRoofHeadroom;
    view.y_ticks = decade_ticks(view.first_y, view.last_y, "flop/s");
}

std::string per_layer_text(const models::Workload& workload) {
    return fmt::format("A layer: {}. Its attention, forward: {}.",
                       sum_text(work_of_layer(workload)),
                       sum_text(attention_of(logical_ops(workload), workload.precision)));
}

std::string headline_of(const MovementView& view, const MovementRequest& request) {
    const auto& first = view.traces.front().memory_bound_share;
    if (!first) return {};
    std::string text = fmt::format(
        "Memory-bound ops take {} of the time{}, by the limits of {}", format_percent(*first),
        request.scope == MovementScope::kLayers ? " in the layers" : "", view.peaks.name);
    if (view.traces.size() > 1 && view.traces[1].memory_bound_share) {
        text += fmt::format("; in B {}", format_percent(*view.traces[1].memory_bound_share));
    }
    return text + ".";
}

MovementTrace trace_of(const StepIndex& step, const PeaksOfTrace& peaks,
                       const MovementRequest& request) {
    MovementTrace trace;
    const std::optional<models::Workload> workload = workload_of(step.trace());
    const MovementReport report = report_of(step.trace(), workload, request);
    trace.rows = movement_rows(report.rows, peaks.peaks, peaks.fit_its_times);
    sort_rows(trace.rows, request.sort_by, request.descending);
    OpLabels labels;
    for (const MovementViewRow& row : trace.rows) labels.add(row.row);
    for (MovementViewRow& row : trace.rows) row.label = labels.label_of(row.row);
    const bool is_run = request.ops == MovementOps::kRun;
    trace.classes = movement_classes(report, workload ? &*workload : nullptr,
                                     is_run ? request.scope : MovementScope::kLayers);
    if (peaks.fit_its_times) trace.memory_bound_share = memory_bound_share(report, peaks.peaks);
    trace.total = sum_text(total_of(report.rows));
    if (!is_run && workload) trace.per_layer = per_layer_text(*workload);
    return trace;
}

}  // namespace

Marker marker_of(PhaseKind phase) {
    constexpr std::array<Marker, kPhaseKindNames.size()> kMarkers{
        Marker::kCircle, Marker::kUp, Marker::kSquare, Marker::kDiamond, Marker::kCross};
    return kMarkers[static_cast<std::size_t>(phase)];
}

CallClass call_class_of(OpClass op_class) { return static_cast<CallClass>(op_class); }

std::string sum_text(const MovementWork& work) {
    constexpr int kDigits = 5;
    std::string text =
        fmt::format("{}, {}", format_amount(static_cast<double>(work.flop), "flop", kDigits),
                    format_amount(static_cast<double>(work.words()), "words", kDigits));
    if (work.words() > 0) {
        text += fmt::format(", {:.1f} flop a word",
                            static_cast<double>(work.flop) / static_cast<double>(work.words()));
    }
    if (work.bytes > 0) {
        text += fmt::format(" ({:.1f} a byte)", static_cast<double>(work.flop) / work.bytes);
    }
    if (work.time_ns > 0) text += ", " + format_duration(work.time_ns);
    return text;
}

std::optional<std::size_t> row_of(const MovementTrace& movement, const Trace& trace, Id<Op> call) {
    if (!call.valid() || call.index() >= trace.ops.size()) return std::nullopt;
    Id<Op> counted;
    for (Id<Op> op = call; op.valid();) {
        const Op row = trace.ops[op];
        if (row.flop > 0 || row.read_words > 0 || row.written_words > 0) counted = op;
        op = row.parent < op ? row.parent : Id<Op>();  // damaged files may have cycles
    }
    if (!counted.valid()) return std::nullopt;
    const std::string_view name = name_of_call(trace, counted);
    const Id<Phase> phase = trace.ops.get<&Op::phase>(counted);
    const Id<ModulePath> module = module_of(trace, counted);
    std::string_view path;
    if (module.valid()) {
        path = path_of_module(trace, module);
        const std::string_view layer_path = layer_path_of(trace, module);
        if (!layer_path.empty()) path = split_layer_path(path, layer_path).inside;
    }
    for (std::size_t i = 0; i < movement.rows.size(); ++i) {
        const MovementRow& row = movement.rows[i].row;
        if (row.name == name && row.module == path && phase.valid() &&
            row.phase == trace.phases.get<&Phase::kind>(phase)) {
            return i;
        }
    }
    return std::nullopt;
}

double roof_at(const DevicePeaks& peaks, double flop_per_byte) {
    const double by_data = peaks.bytes_per_s * flop_per_byte;
    return peaks.flop_per_s > 0 ? std::min(peaks.flop_per_s, by_data) : by_data;
}

MovementView build_movement_view(const MovementRequest& request) {
    MovementView view;
    const Steps& steps = request.steps;
    if (!steps.a) return view;
    view.peaks = request.peaks[0].peaks;
    if (view.peaks.flop_per_s > 0 && view.peaks.bytes_per_s > 0) {
        view.ridge = view.peaks.flop_per_s / view.peaks.bytes_per_s;
    }
    double most_weight = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        view.traces.push_back(trace_of(steps[i], request.peaks[i], request));
        for (const MovementViewRow& row : view.traces.back().rows) {
            view.has_times |= row.row.work.time_ns > 0;
            most_weight = std::max(most_weight, weight_of(row));
        }
        if (request.ops == MovementOps::kLogical) continue;  // they have no times to explain
        for (const std::string& note : request.peaks[i].notes) {
            const auto& notes = view.notes;
            if (std::ranges::find(notes, note) == notes.end()) view.notes.push_back(note);
        }
    }
    const DevicePeaks& other = request.peaks[1].peaks;
    if (steps.b && !(other == view.peaks)) {
        view.notes.push_back(fmt::format("The roof is of {}; the peaks of B are of {}.",
                                         view.peaks.name, other.name));
    }
    set_x_axis(view);
    for (std::size_t i = 0; i < view.traces.size(); ++i) {
        view.traces[i].dots = dots_of(view.traces[i].rows, request.peaks[i].peaks, view.gutter_x,
                                      most_weight, view.has_times);
    }
    if (view.traces.size() > 1) join(view.traces[0], view.traces[1]);
    set_y_axis(view);
    view.headline = headline_of(view, request);
    return view;
}

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
         "Flop/s, in percent of the GPU's peak for matmuls",
         [](Row r) { return r.rates.peak_share; },
         [](Row r) { return format_share(r.rates.peak_share); }},
        {"bandwidth_bytes_per_s", "bandwidth", Unit::kBytesPerSecond,
         "Bytes of the words in and out, over the time. The memory saw this or more",
         [](Row r) { return r.rates.bytes_per_s; },
         [](Row r) {
             return r.rates.bytes_per_s ? format_amount(*r.rates.bytes_per_s, "B/s") : kNoValue;
         }},
        {"mue", "MUE %", Unit::kShare,
         "Memory usage efficiency: minimum bytes / (time x peak bandwidth), the share of the time "
         "that the words of this row take at full bandwidth",
         [](Row r) { return r.rates.mue; }, [](Row r) { return format_share(r.rates.mue); }},
        {"least_ns", "least time", Unit::kNanoseconds,
         "On the GPU: the longer of arithmetic at its peak and data at its bandwidth",
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
    MovementColumns shown;
    for (const MovementColumn column : columns) {
        shown.push_back(table_column(column));
        if (by == MovementBy::kLayer && column == MovementColumn::kOp) shown.back().title = "layer";
    }
    TextTable table = text_table(shown, rows);
    for (const MovementViewRow& row : rows) {
        std::vector<Tone>& tones = table.tones.emplace_back();
        for (const MovementColumn column : columns) {
            const bool is_strong = (column == MovementColumn::kPeak && row.is_peak_larger) ||
                                   (column == MovementColumn::kMue && row.is_mue_larger);
            tones.push_back(is_strong ? Tone::kStrong : Tone::kNeutral);
        }
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

const std::vector<TableColumn<MovementClassRow>>& movement_class_columns() {
    using Row = MovementClassRow;
    const auto percent = [](auto share, int decimals) {
        return [=](const Row& row) -> std::string {
            const std::optional<double> value = row.*share;
            return value ? fmt::format("{:.{}f} %", 100 * *value, decimals) : kNoValue;
        };
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"class", "class", Unit::kText, "", [](const Row& row) { return name_of(row.op_class); },
         [](const Row& row) { return std::string(name_of_class(row.op_class)); }},
        {"flop_share", "of flop", Unit::kShare, "", &Row::flop_share, percent(&Row::flop_share, 2)},
        {"time_share", "of time", Unit::kShare, "", &Row::time_share, percent(&Row::time_share, 1)},
        {"ivanov_flop_share", "of flop, Ivanov", Unit::kShare,
         "Table 1 of arXiv 2007.00072, a layer of BERT-large", &Row::ivanov_flop_share,
         percent(&Row::ivanov_flop_share, 2)},
        {"ivanov_time_share", "of time, Ivanov", Unit::kShare, "PyTorch of 2020 on a V100",
         &Row::ivanov_time_share, percent(&Row::ivanov_time_share, 1)}};
    return kColumns;
}

TextTable movement_class_table(const std::vector<MovementClassRow>& classes) {
    const bool has_paper = std::ranges::any_of(
        classes, [](const auto& row) { return row.ivanov_flop_share.has_value(); });
    const auto& all = movement_class_columns();
    return text_table(has_paper ? all : pick(all, {"class", "flop_share", "time_share"}), classes);
}

}  // namespace profiler
