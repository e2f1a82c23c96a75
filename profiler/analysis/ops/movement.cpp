#include "profiler/analysis/ops/movement.h"

#include "profiler/analysis/ops/outermost_ops.h"
#include "profiler/analysis/step/layer_path.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

constexpr double kOneSecond_ns = 1e9;

double mean_of(double sum, std::size_t count) { return sum / static_cast<double>(count); }
int64_t rounded_mean(int64_t sum, std::size_t count) {
    return std::llround(mean_of(static_cast<double>(sum), count));
}

/// Adds up the calls of all recorded steps.
class MovementBuilder {
public:
    MovementBuilder(const Trace& trace, MovementScope scope)
        : trace_(trace), scope_(scope), calls_(trace) {}

    MovementReport build() {
        for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
            const Id<Op> op(i);
            if (!is_in_scope(op)) continue;
            if (calls_.is_counted(op)) {
                add_call(op);
            } else if (!calls_.owner_of(op).valid()) {
                other_time_ns_ = add_times(other_time_ns_, calls_.device_ns_of(op));
            }
        }
        const std::size_t num_steps = std::max<std::size_t>(trace_.steps.size(), 1);
        divide(rows_, num_steps);
        divide(layers_, num_steps);
        return {.rows = std::move(rows_),
                .layers = std::move(layers_),
                .num_layers = trace_.run().num_layers,
                .other_time_ns = rounded_mean(other_time_ns_, num_steps),
                .has_device_times = calls_.has_device_times()};
    }

private:
    bool is_in_scope(Id<Op> op) const {
        const auto phase = calls_.phase_of(op);
        if (!phase) return false;
        if (scope_ == MovementScope::kAll) return true;
        const bool is_pass = phase == PhaseKind::kForward || phase == PhaseKind::kBackward;
        return is_pass && calls_.place_of(op).layer >= 0;
    }

    void add_call(Id<Op> op) {
        const PhaseKind phase = calls_.phase_of(op).value_or(PhaseKind::kForward);
        const CallPlace place = calls_.place_of(op);
        const LayerPath split = split_layer_path(place.path, place.layer_path);
        const bool in_layer = place.layer >= 0;
        const MovementWork work = calls_.work_of(op);
        const OpClass op_class = trace_.ops.get<&Op::op_class>(op);
        const std::string_view name = trace_.text(trace_.ops.get<&Op::name>(op));

        MovementRow& row =
            find(rows_, row_places_,
                 {name, in_layer ? split.inside : place.path, phase, op_class, in_layer});
        row.op_class = op_class;
        row.phase = phase;
        row.is_in_layer = in_layer;
        if (!row.call.valid() || work.time_ns > calls_.time_of(row.call)) row.call = op;
        row.work += work;

        const std::string_view around = place.path.empty() ? name_of(phase) : split.layer;
        find(layers_, layer_places_, {around, {}, {}, {}, in_layer}).work += work;
    }

    using Key = std::tuple<std::string_view, std::string_view, PhaseKind, OpClass, bool>;
    using Places = std::map<Key, std::size_t>;

    static MovementRow& find(std::vector<MovementRow>& rows, Places& places, const Key& key) {
        const auto [place, is_new] = places.try_emplace(key, rows.size());
        if (is_new) {
            MovementRow row;
            row.name = std::get<0>(key);
            row.module = std::get<1>(key);
            rows.push_back(std::move(row));
        }
        return rows[place->second];
    }

    static void divide(std::vector<MovementRow>& rows, std::size_t num_steps) {
        for (MovementRow& row : rows) {
            MovementWork& w = row.work;
            for (int64_t* sum :
                 {&w.num_calls, &w.flop, &w.words_read, &w.words_written, &w.time_ns}) {
                *sum = rounded_mean(*sum, num_steps);
            }
            w.bytes = mean_of(w.bytes, num_steps);
        }
    }

    const Trace& trace_;
    const MovementScope scope_;
    const OutermostOps calls_;
    int64_t other_time_ns_ = 0;
    std::vector<MovementRow> rows_;
    std::vector<MovementRow> layers_;
    Places row_places_;
    Places layer_places_;
};

std::vector<MovementRow> by_class(const MovementReport& report) {
    std::vector<MovementRow> rows;
    for (std::size_t c = 0; c < kOpClassNames.size(); ++c) {
        MovementRow sum;
        sum.name = kOpClassNames[c];
        sum.op_class = static_cast<OpClass>(c);
        for (const MovementRow& row : report.rows) {
            if (row.op_class == sum.op_class) sum.work += row.work;
        }
        // One call in three steps is no call on average.
        if (sum.work.num_calls > 0 || sum.work.words() > 0) rows.push_back(std::move(sum));
    }
    return rows;
}

std::optional<double> ratio(double dividend, double divisor) {
    if (dividend <= 0 || divisor <= 0) return std::nullopt;
    return dividend / divisor;
}

}  // namespace

MovementWork& MovementWork::operator+=(const MovementWork& other) {
    num_calls += other.num_calls;
    flop += other.flop;
    words_read += other.words_read;
    words_written += other.words_written;
    bytes += other.bytes;
    time_ns = add_times(time_ns, other.time_ns);
    return *this;
}

MovementReport movement_of(const Trace& trace, MovementScope scope) {
    return MovementBuilder(trace, scope).build();
}

std::vector<MovementRow> rows_by(const MovementReport& report, MovementBy by) {
    if (by == MovementBy::kClass) return by_class(report);
    return by == MovementBy::kLayer ? report.layers : report.rows;
}

MovementWork total_of(const std::vector<MovementRow>& rows) {
    MovementWork sum;
    for (const MovementRow& row : rows) sum += row.work;
    return sum;
}

std::optional<bool> MovementRates::is_memory_bound() const {
    if (!memory_limit_ns) return std::nullopt;
    return *memory_limit_ns >= compute_limit_ns.value_or(0);
}

MovementRates rates_of(const MovementWork& work, const DevicePeaks& peaks, bool with_times) {
    const auto flop = static_cast<double>(work.flop);
    const double time_s = static_cast<double>(work.time_ns) / kOneSecond_ns;
    MovementRates rates{
        .flop_per_word = ratio(flop, static_cast<double>(work.words())),
        .flop_per_byte = ratio(flop, work.bytes),
        .flop_per_s = ratio(flop, time_s),
        .bytes_per_s = ratio(work.bytes, time_s),
        .compute_limit_ns = ratio(flop * kOneSecond_ns, peaks.flop_per_s),
        .memory_limit_ns = ratio(work.bytes * kOneSecond_ns, peaks.bytes_per_s),
    };
    // Without a peak of its arithmetic nobody knows which limit an op is nearer to.
    if (flop > 0 && peaks.flop_per_s <= 0) rates.memory_limit_ns.reset();
    if (with_times && rates.flop_per_s) {
        rates.peak_share = ratio(*rates.flop_per_s, peaks.flop_per_s);
    }
    if (with_times && rates.bytes_per_s) rates.mue = ratio(*rates.bytes_per_s, peaks.bytes_per_s);
    return rates;
}

std::optional<double> memory_bound_share(const MovementReport& report, const DevicePeaks& peaks) {
    if (peaks.flop_per_s <= 0) return std::nullopt;
    double bound_ns = 0, all_ns = 0;
    bool is_known = false;
    for (const MovementRow& row : report.rows) {
        const auto is_bound = rates_of(row.work, peaks).is_memory_bound();
        is_known |= is_bound.has_value();
        all_ns += static_cast<double>(row.work.time_ns);
        if (is_bound.value_or(false)) bound_ns += static_cast<double>(row.work.time_ns);
    }
    if (!is_known || all_ns <= 0) return std::nullopt;
    return bound_ns / all_ns;
}

std::vector<ClassShare> class_shares(const MovementReport& report) {
    const MovementWork all = total_of(report.rows);
    std::vector<ClassShare> shares;
    for (const MovementRow& row : by_class(report)) {
        ClassShare share{.op_class = *row.op_class};
        if (all.flop > 0) {
            share.flop = static_cast<double>(row.work.flop) / static_cast<double>(all.flop);
        }
        if (all.time_ns > 0) {
            share.time = static_cast<double>(row.work.time_ns) / static_cast<double>(all.time_ns);
        }
        shares.push_back(share);
    }
    return shares;
}

bool is_workload_of_ivanov(const models::Workload& workload) {
    const models::ModelConfig& model = workload.model;
    return !model.traits().is_pre_norm() && model.hidden_size == 1024 && model.num_heads == 16 &&
           model.intermediate_size == 4096 && workload.batch_size == 8 && workload.seq_len == 512 &&
           activation_bytes(workload.precision) == 2;
}

int64_t activation_bytes(models::Precision precision) {
    return models::is_autocast(precision) ? 2 : models::weight_bytes(precision);
}

}  // namespace profiler
