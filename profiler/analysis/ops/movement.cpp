#include "profiler/analysis/ops/movement.h"

#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/enumerations.h"
#include "profiler/trace/recomputation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

constexpr double kOneSecond_ns = 1e9;

double mean_of(double sum, std::size_t count) { return sum / static_cast<double>(count); }
int64_t rounded_mean(int64_t sum, std::size_t count) {
    return std::llround(mean_of(static_cast<double>(sum), count));
}

/// Adds up the calls of the steps that figures are of.
class MovementBuilder {
public:
    MovementBuilder(const Trace& trace, MovementScope scope)
        : trace_(trace), scope_(scope), calls_(trace), is_in_figures_(are_in_figures(trace)) {}

    MovementReport build() {
        for (const Id<Op> op : trace_.ops.ids()) {
            if (!is_in_scope(op)) continue;
            if (calls_.is_counted(op)) {
                add_call(op);
            } else if (!calls_.owner_of(op).valid()) {
                other_time_ns_ = add_times(other_time_ns_, calls_.device_ns_of(op));
            }
        }
        const auto num_steps = std::max<std::size_t>(
            static_cast<std::size_t>(std::ranges::count(is_in_figures_, true)), 1);
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
        const Id<Step> step = trace_.phases.get<&Phase::step>(trace_.ops.get<&Op::phase>(op));
        if (!is_in_figures_[step.index()]) return false;
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
        const std::string_view name = name_of_call(trace_, op);

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
    const std::vector<bool> is_in_figures_;
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

namespace {

using NodeIndex = std::size_t;

/// Adds what flows between the same two nodes up to one edge.
class EdgeList {
public:
    void add(NodeIndex from, NodeIndex to, int64_t words, std::string_view tensor) {
        if (from == to) return;
        const auto [place, is_new] = places_.try_emplace({from, to}, edges_.size());
        if (is_new) edges_.push_back({.from = from, .to = to, .tensor = std::string(tensor)});
        edges_[place->second].words += words;
    }
    std::vector<MovementEdge> take() { return std::move(edges_); }

private:
    std::map<std::pair<NodeIndex, NodeIndex>, std::size_t> places_;
    std::vector<MovementEdge> edges_;
};

/// Finds what the calls of one layer exchange.
class FlowBuilder {
public:
    explicit FlowBuilder(const Trace& trace)
        : trace_(trace),
          calls_(trace),
          last_step_(last_step(trace)),
          last_forward_(last_forward_of(trace)) {}

    MovementFlow build() {
        flow_.layer = middle_layer();
        if (flow_.layer < 0) return {};
        add_nodes();
        add_edges();
        flow_.edges = edges_.take();
        return std::move(flow_);
    }

private:
    /// The last forward of the last step, and what follows it in the step.
    bool is_in_last_micro_batch(Id<Op> op) const {
        const Id<Phase> id = trace_.ops.get<&Op::phase>(op);
        if (!id.valid() || trace_.steps.empty()) return false;
        const Phase phase = trace_.phases[id];
        if (phase.step != last_step_) return false;
        return !last_forward_.valid() ||
               phase.last_event >= trace_.phases.get<&Phase::last_event>(last_forward_);
    }

    int64_t middle_layer() const {
        std::set<int64_t> layers;
        for (const int64_t layer : trace_.module_paths.column<&ModulePath::layer>()) {
            if (layer >= 0) layers.insert(layer);
        }
        if (layers.empty()) return -1;
        return *std::next(layers.begin(), static_cast<std::ptrdiff_t>(layers.size() / 2));
    }

    void add_nodes() {
        for (const Id<Op> op : trace_.ops.ids()) {
            if (!calls_.is_counted(op) || !is_in_last_micro_batch(op)) continue;
            const CallPlace place = calls_.place_of(op);
            if (place.layer != flow_.layer) continue;
            node_of_op_[op.value] = flow_.nodes.size();
            flow_.nodes.push_back(
                {.name = std::string(name_of_call(trace_, op)),
                 .module = std::string(split_layer_path(place.path, place.layer_path).inside),
                 .phase = calls_.phase_of(op).value_or(PhaseKind::kForward),
                 .op_class = trace_.ops.get<&Op::op_class>(op),
                 .work = calls_.work_of(op),
                 .call = op,
                 .runs_again = runs_again(trace_, op)});
        }
    }

    /// Rows of `op_tensor` stand in the order in which calls end, reads of a call before its
    /// writes; a stable sort by node keeps that.
    void add_edges() {
        struct Use {
            NodeIndex node = 0;
            Id<Tensor> tensor;
            int64_t words = 0;
            bool is_write = false;
        };
        std::vector<Use> uses;
        for (const OpTensor row : trace_.op_tensors.rows()) {
            const auto node = node_of_op_.find(row.op.value);
            if (node == node_of_op_.end() || !row.tensor.valid()) continue;
            uses.push_back({node->second, row.tensor, row.words, row.access == Access::kWrite});
        }
        std::ranges::stable_sort(uses, {},
                                 [](const Use& use) { return std::pair(use.node, use.is_write); });
        std::unordered_map<int32_t, NodeIndex> writer;  // last one of each storage
        for (const Use& use : uses) {
            const Id<Storage> storage = trace_.tensors.get<&Tensor::storage>(use.tensor);
            if (!storage.valid()) continue;
            if (use.is_write) {
                writer[storage.value] = use.node;
                continue;
            }
            const auto from = writer.find(storage.value);
            if (from == writer.end()) continue;
            edges_.add(from->second, use.node, use.words,
                       trace_.text(trace_.tensors.get<&Tensor::name>(use.tensor)));
        }
    }

    const Trace& trace_;
    const OutermostOps calls_;
    const Id<Step> last_step_;
    const Id<Phase> last_forward_;
    MovementFlow flow_;
    EdgeList edges_;
    std::unordered_map<int32_t, NodeIndex> node_of_op_;
};

}  // namespace

MovementFlow movement_flow(const Trace& trace) { return FlowBuilder(trace).build(); }

MovementFlow logical_flow(const models::Workload& workload) {
    MovementFlow flow;
    EdgeList edges;
    std::map<std::string, NodeIndex> writer;
    const auto bytes = static_cast<double>(activation_bytes(workload.precision));
    for (const LogicalOp& op : logical_ops(workload)) {
        const NodeIndex node = flow.nodes.size();
        MovementWork work;
        work.num_calls = 1;
        work.flop = op.flop;
        work.words_read = op.words_read();
        work.words_written = op.words_written();
        work.bytes = static_cast<double>(work.words()) * bytes;
        flow.nodes.push_back({.name = op.name,
                              .module = op.module,
                              .phase = op.phase,
                              .op_class = op.op_class,
                              .work = work,
                              .call = {}});
        for (const LogicalTensor& read : op.reads) {
            const auto from = writer.find(read.name);
            if (from != writer.end()) edges.add(from->second, node, read.words, read.name);
        }
        for (const LogicalTensor& written : op.writes) writer[written.name] = node;
    }
    flow.edges = edges.take();
    return flow;
}

namespace {

constexpr double kUsualWord_bytes = 4;  // of calls that name no tensors

/// A copy does not read what it overwrites, although that is one of its arguments.
bool is_copy(std::string_view name) {
    return name == "aten::copy_" || name == "aten::_foreach_copy_";
}

}  // namespace

OutermostOps::OutermostOps(const Trace& trace)
    : trace_(trace),
      has_device_times_(!trace.kernels.empty() || !trace.memcpys.empty()),
      owners_(trace.ops.size()),
      words_(trace.ops.size()),
      device_ns_(trace.ops.size()) {
    find_owners();
    find_word_sizes();
    add_device_times(trace.kernels);
    add_device_times(trace.memcpys);
}

/// A call in a damaged file may stand before the call around it; it is then taken for outermost.
void OutermostOps::find_owners() {
    const auto parents = trace_.ops.column<&Op::parent>();
    const auto flop = trace_.ops.column<&Op::flop>();
    const auto read = trace_.ops.column<&Op::read_words>();
    const auto written = trace_.ops.column<&Op::written_words>();
    for (std::size_t i = 0; i < parents.size(); ++i) {
        const Id<Op> op(i), parent = parents[i];
        if (parent.valid() && parent < op) owners_[i] = owners_[parent.index()];
        const bool is_counted = flop[i] > 0 || read[i] > 0 || written[i] > 0;
        if (!owners_[i].valid() && is_counted) owners_[i] = op;
    }
}

void OutermostOps::find_word_sizes() {
    const auto ops = trace_.op_tensors.column<&OpTensor::op>();
    const auto tensors = trace_.op_tensors.column<&OpTensor::tensor>();
    const auto words = trace_.op_tensors.column<&OpTensor::words>();
    const auto dtypes = trace_.tensors.column<&Tensor::dtype>();
    const auto accesses = trace_.op_tensors.column<&OpTensor::access>();
    const auto storages = trace_.tensors.column<&Tensor::storage>();
    std::set<std::pair<std::size_t, std::size_t>> overwritten;  // op and storage, of copies
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!ops[i].valid() || !tensors[i].valid() || accesses[i] != Access::kWrite) continue;
        if (is_copy(name_of_call(trace_, ops[i]))) {
            const Id<Storage> storage = storages[tensors[i].index()];
            if (storage.valid()) overwritten.emplace(ops[i].index(), storage.index());
        }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!ops[i].valid() || !tensors[i].valid()) continue;
        const int64_t size_bytes = element_bytes(dtypes[tensors[i].index()]);
        if (size_bytes == 0) continue;
        const Id<Storage> storage = storages[tensors[i].index()];
        const bool is_target =
            storage.valid() && overwritten.contains({ops[i].index(), storage.index()});
        if (is_target && accesses[i] == Access::kRead) continue;
        Words& sum = words_[ops[i].index()];
        sum.bytes += static_cast<double>(words[i]) * static_cast<double>(size_bytes);
        sum.words += words[i];
    }
}

template <typename Launch>
void OutermostOps::add_device_times(const Table<Launch>& launches) {
    const auto ops = launches.template column<&Launch::op>();
    const auto starts = launches.template column<&Launch::start_ns>();
    const auto ends = launches.template column<&Launch::end_ns>();
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!ops[i].valid()) continue;
        const Id<Op> owner = owner_of(ops[i]);
        int64_t& sum_ns = device_ns_[(owner.valid() ? owner : ops[i]).index()];
        sum_ns = add_times(sum_ns, std::max<int64_t>(ends[i] - starts[i], 0));
    }
}

std::optional<PhaseKind> OutermostOps::phase_of(Id<Op> op) const {
    const Id<Phase> phase = trace_.ops.get<&Op::phase>(op);
    if (!phase.valid() || !trace_.phases.get<&Phase::step>(phase).valid()) return std::nullopt;
    return trace_.phases.get<&Phase::kind>(phase);
}

CallPlace OutermostOps::place_of(Id<Op> op) const {
    const Id<ModulePath> module = module_of(trace_, op);
    if (!module.valid()) return {};
    return {path_of_module(trace_, module), trace_.module_paths.get<&ModulePath::layer>(module),
            layer_path_of(trace_, module)};
}

int64_t OutermostOps::time_of(Id<Op> op) const {
    if (has_device_times_) return device_ns_of(op);
    return std::max<int64_t>(trace_.ops.get<&Op::end_ns>(op) - trace_.ops.get<&Op::start_ns>(op),
                             0);
}

MovementWork OutermostOps::work_of(Id<Op> op) const {
    MovementWork work;
    work.num_calls = 1;
    work.flop = trace_.ops.get<&Op::flop>(op);
    work.words_read = trace_.ops.get<&Op::read_words>(op);
    work.words_written = trace_.ops.get<&Op::written_words>(op);
    work.time_ns = time_of(op);
    if (is_copy(name_of_call(trace_, op))) {
        work.words_read = std::min(work.words_read, work.words_written);
    }
    // Some calls name only a part of what they move: then their mean element counts.
    const Words& known = words_[op.index()];
    const double word_bytes =
        known.words > 0 ? known.bytes / static_cast<double>(known.words) : kUsualWord_bytes;
    work.bytes = static_cast<double>(work.words()) * word_bytes;
    return work;
}

}  // namespace profiler
