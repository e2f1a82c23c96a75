#include "profiler/view/kernels/movement_view.h"

#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/step/block_origin.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/layer_path.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/op_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace profiler {
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
        std::stable_sort(rows.begin(), rows.end(),
                         [&](const MovementViewRow& a, const MovementViewRow& b) {
                             return descending ? less(b, a) : less(a, b);
                         });
    };
    if (by == MovementColumn::kPhase) {
        if (descending) std::reverse(rows.begin(), rows.end());
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
    std::stable_sort(dots.begin(), dots.end(), [](const MovementDot& a, const MovementDot& b) {
        return a.radius > b.radius;
    });
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
    const auto ops = logical_ops(workload);
    models::Workload one = workload;
    one.model.num_layers = 1;
    one.gradient_accumulation_steps = 1;
    return fmt::format("A layer: {}. Its attention, forward: {}.",
                       sum_text(total_of(logical_movement(one).rows)),
                       sum_text(attention_of(ops, workload.precision)));
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
    switch (phase) {
        case PhaseKind::kForward:
            return Marker::kCircle;
        case PhaseKind::kLoss:
            return Marker::kUp;
        case PhaseKind::kBackward:
            return Marker::kSquare;
        case PhaseKind::kOptimizer:
            return Marker::kDiamond;
    }
    return Marker::kCircle;
}

ActivityClass activity_class_of(OpClass op_class) { return static_cast<ActivityClass>(op_class); }

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
    const std::string_view name = trace.text(trace.ops.get<&Op::name>(counted));
    const Id<Phase> phase = trace.ops.get<&Op::phase>(counted);
    const Id<ModulePath> module = module_of(trace, counted);
    std::string_view path;
    if (module.valid()) {
        path = trace.text(trace.module_paths.get<&ModulePath::path>(module));
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
            if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
                view.notes.push_back(note);
            }
        }
    }
    const DevicePeaks& other = request.peaks[1].peaks;
    if (steps.b && !(other == view.peaks)) {
        view.notes.push_back(fmt::format("The roof is that of {}; the peaks of B are those of {}.",
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

}  // namespace profiler
