#include "profiler/analysis/ops/movement_flow.h"

#include "profiler/analysis/ops/logical_ops.h"
#include "profiler/analysis/ops/outermost_ops.h"
#include "profiler/analysis/step/checkpoint_calls.h"
#include "profiler/analysis/step/layer_path.h"
#include "profiler/analysis/step/recorded_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace profiler {
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
        : trace_(trace), calls_(trace), last_forward_(last_forward_of(trace)) {}

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
        if (phase.step != Id<Step>(trace_.steps.size() - 1)) return false;
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
        for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
            const Id<Op> op(i);
            if (!calls_.is_counted(op) || !is_in_last_micro_batch(op)) continue;
            const CallPlace place = calls_.place_of(op);
            if (place.layer != flow_.layer) continue;
            node_of_op_[op.value] = flow_.nodes.size();
            flow_.nodes.push_back(
                {.name = std::string(trace_.text(trace_.ops.get<&Op::name>(op))),
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
        for (std::size_t i = 0; i < trace_.op_tensors.size(); ++i) {
            const OpTensor row = trace_.op_tensors[Id<OpTensor>(i)];
            const auto node = node_of_op_.find(row.op.value);
            if (node == node_of_op_.end() || !row.tensor.valid()) continue;
            uses.push_back({node->second, row.tensor, row.words, row.access == Access::kWrite});
        }
        std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
            return std::pair(a.node, a.is_write) < std::pair(b.node, b.is_write);
        });
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

}  // namespace profiler
