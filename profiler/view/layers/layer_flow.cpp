#include "profiler/view/layers/layer_flow.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/recomputation.h"
#include "profiler/trace/text.h"
#include "profiler/view/kernels/kernels_view.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

struct FlowCalls {
    std::function<FlowPlace(Id<Op>)> place_of;                // column kOutside: in none
    std::function<std::optional<PhaseKind>(Id<Op>)> kind_of;  // none: not of this step
};

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// One row of the ledger on its way to a FlowTensor.
struct SavedRow {
    const LedgerRow* row = nullptr;
    std::string name;
    Id<Op> maker;
    struct Keeper {
        Id<Op> op;
        std::size_t column = kOutside;
        int64_t released_event = kNever;
    };
    std::vector<Keeper> keepers;  // ops of these layers that save it
    Id<Op> consumer_op;
    std::size_t consumer = kOutside;
};

/// Where nothing better is known, the recorder names a tensor after its op: "to_copy_output". Files
/// of older versions have "_to_copy_output" for every cast.
bool is_named_after_copy(std::string_view name) {
    if (!name.ends_with("_output")) return name.empty();
    if (name.starts_with('_')) name.remove_prefix(1);
    return name.starts_with("to_copy") || name.starts_with("clone") || name.starts_with("copy");
}

class Collector {
public:
    Collector(const Trace& trace, const LayerRange& layers, const FlowCalls& calls)
        : trace_(trace), layers_(layers), calls_(calls) {}

    std::vector<FlowTensor> collect(const Ledger& ledger) {
        for (const LedgerRow& row : ledger.rows) {
            if (row.layer < 0 || !layers_.contains(row.layer) || !row.storage.valid()) continue;
            row_of_storage_.emplace(row.storage.value, rows_.size());
            rows_.push_back({.row = &row, .name = std::string(row.tensor)});
        }
        if (rows_.empty()) return {};
        find_makers();
        find_keepers();
        name_copies();
        find_consumers();
        return sum_layers();
    }

private:
    SavedRow* row_of(Id<Storage> storage) {
        const auto found = row_of_storage_.find(storage.value);
        return found == row_of_storage_.end() ? nullptr : &rows_[found->second];
    }
    Id<Storage> storage_of(Id<Tensor> tensor) const {
        return tensor.valid() ? trace_.tensors.get<&Tensor::storage>(tensor) : Id<Storage>();
    }

    void find_makers() {
        for (SavedRow& saved : rows_) {
            if (saved.row->allocation.valid()) {
                saved.maker = trace_.allocations.get<&Allocation::op>(saved.row->allocation);
            }
        }
        for (std::size_t i = 0; i < trace_.tensors.size(); ++i) {
            SavedRow* saved = row_of(storage_of(Id<Tensor>(i)));
            if (saved && !saved->maker.valid()) {
                saved->maker = trace_.tensors.get<&Tensor::producer>(Id<Tensor>(i));
            }
        }
    }

    void find_keepers() {
        for (std::size_t i = 0; i < trace_.saves.size(); ++i) {
            const Save save = trace_.saves[Id<Save>(i)];
            SavedRow* saved = row_of(save.storage);
            if (!saved || !save.op.valid()) continue;
            const auto kind = calls_.kind_of(save.op);
            if (!kind || kind == PhaseKind::kBackward) continue;
            saved->keepers.push_back({save.op, calls_.place_of(save.op).column,
                                      save.released_event < 0 ? kNever : save.released_event});
        }
    }

    // ---- names -------------------------------------------------------------------------------

    /// A copy reads the tensor that it is named after. Two passes: who writes the unnamed storages,
    /// and what else these ops read.
    void name_copies() {
        std::unordered_map<int32_t, std::size_t> row_of_writer;
        for (std::size_t i = 0; i < trace_.op_tensors.size(); ++i) {
            const OpTensor use = trace_.op_tensors[Id<OpTensor>(i)];
            if (use.access != Access::kWrite || !use.op.valid()) continue;
            const SavedRow* saved = row_of(storage_of(use.tensor));
            if (saved && is_copy(*saved, use.op)) {
                row_of_writer.emplace(use.op.value, static_cast<std::size_t>(saved - rows_.data()));
            }
        }
        if (row_of_writer.empty()) return;
        for (std::size_t i = 0; i < trace_.op_tensors.size(); ++i) {
            const OpTensor use = trace_.op_tensors[Id<OpTensor>(i)];
            const auto found = row_of_writer.find(use.op.value);
            if (found == row_of_writer.end() || use.access != Access::kRead) continue;
            SavedRow& saved = rows_[found->second];
            if (!use.tensor.valid() || storage_of(use.tensor) == saved.row->storage) continue;
            const Tensor source = trace_.tensors[use.tensor];
            const std::string_view name = trace_.text(source.name);
            if (is_named_after_copy(name) || !is_named_after_copy(saved.name)) continue;
            saved.name = short_tensor_name(name);
            saved.name += source.dtype == saved.row->dtype ? " copy" : " cast";
        }
    }
    bool is_copy(const SavedRow& saved, Id<Op> writer) const {
        if (!is_named_after_copy(saved.name)) return false;
        const std::string_view op = name_of_call(trace_, writer);
        return op.find("copy") != std::string_view::npos ||
               op.find("clone") != std::string_view::npos;
    }

    // ---- consumers ---------------------------------------------------------------------------

    void find_consumers() {
        backward_of_.assign(trace_.ops.size(), Id<Op>());
        const auto forward = trace_.ops.column<&Op::forward>();
        for (std::size_t i = 0; i < forward.size(); ++i) {
            if (!forward[i].valid() || backward_of_[forward[i].index()].valid()) continue;
            if (calls_.kind_of(Id<Op>(i)) == PhaseKind::kBackward) {
                backward_of_[forward[i].index()] = Id<Op>(i);
            }
        }
        bool all_known = true;
        for (SavedRow& saved : rows_) {
            const SavedRow::Keeper* last = nullptr;
            for (const SavedRow::Keeper& keeper : saved.keepers) {
                if (keeper.column == kOutside) continue;
                if (!last || keeper.released_event >= last->released_event) last = &keeper;
            }
            if (!last) continue;
            saved.consumer = last->column;
            saved.consumer_op = backward_of_[last->op.index()];
            all_known = all_known && saved.consumer_op.valid();
        }
        if (!all_known) guess_consumers();
    }

    /// For ops to which no backward call refers.
    void guess_consumers() {
        std::vector<Id<Op>> reader(rows_.size());
        for (std::size_t i = 0; i < trace_.op_tensors.size(); ++i) {
            const OpTensor use = trace_.op_tensors[Id<OpTensor>(i)];
            const SavedRow* saved = row_of(storage_of(use.tensor));
            if (!saved || saved->consumer_op.valid() || use.access != Access::kRead) continue;
            if (!use.op.valid() || calls_.kind_of(use.op) != PhaseKind::kBackward) continue;
            Id<Op>& first = reader[static_cast<std::size_t>(saved - rows_.data())];
            if (!first.valid() || use.op < first) first = use.op;
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            SavedRow& saved = rows_[i];
            if (saved.consumer_op.valid()) continue;
            Id<Op> op = reader[i];
            if (!op.valid() && saved.row->allocation.valid()) {
                op = trace_.allocations.get<&Allocation::freeing_op>(saved.row->allocation);
                if (op.valid() && calls_.kind_of(op) != PhaseKind::kBackward) op = {};
            }
            const FlowPlace place = calls_.place_of(op);
            if (place.column == kOutside) continue;
            saved.consumer_op = op;
            saved.consumer = place.column;
        }
    }

    // ---- the result --------------------------------------------------------------------------

    FlowTensor tensor_of(const SavedRow& saved) const {
        const LedgerRow& row = *saved.row;
        FlowTensor tensor;
        tensor.name = saved.name;
        tensor.path = split_layer_path(row.module_path, row.layer_path).inside;
        tensor.shape = row.shape;
        tensor.dtype = row.dtype;
        tensor.category = row.category;
        tensor.size_bytes = row.size_bytes;
        const FlowPlace made = calls_.place_of(saved.maker);
        if (!made.in_backward) tensor.producer = made.column;
        tensor.maker = saved.maker;
        tensor.consumer = saved.consumer;
        tensor.consumer_op = saved.consumer_op;
        for (const SavedRow::Keeper& keeper : saved.keepers) {
            if (keeper.column == kOutside || keeper.column == saved.consumer) continue;
            auto& also = tensor.also;
            if (std::ranges::find(also, keeper.column) == also.end()) also.push_back(keeper.column);
        }
        for (const std::string_view op : row.saved_by) {
            auto& ops = tensor.kept_by;
            if (std::ranges::find(ops, op) == ops.end()) ops.emplace_back(op);
        }
        tensor.storages.push_back(row.storage);
        tensor.blocks.push_back(row.allocation);
        return tensor;
    }

    /// The same name and place in another layer is the same tensor. Within a layer, repeated names
    /// stay apart.
    std::vector<FlowTensor> sum_layers() const {
        using Key = std::tuple<std::string, std::string, std::size_t, std::size_t, int>;
        std::map<Key, std::size_t> index_of;
        std::map<std::pair<int64_t, Key>, int> seen;
        std::vector<FlowTensor> tensors;
        for (const SavedRow& saved : rows_) {
            FlowTensor tensor = tensor_of(saved);
            Key key(tensor.name, tensor.path, tensor.producer, tensor.consumer, 0);
            std::get<4>(key) = seen[{saved.row->layer, key}]++;
            const auto [entry, is_new] = index_of.emplace(std::move(key), tensors.size());
            if (is_new) {
                tensors.push_back(std::move(tensor));
                continue;
            }
            FlowTensor& sum = tensors[entry->second];
            sum.size_bytes += tensor.size_bytes;
            sum.storages.push_back(saved.row->storage);
            sum.blocks.push_back(saved.row->allocation);
        }
        return tensors;
    }

    const Trace& trace_;
    const LayerRange layers_;
    const FlowCalls& calls_;
    std::vector<SavedRow> rows_;
    std::unordered_map<int32_t, std::size_t> row_of_storage_;
    std::vector<Id<Op>> backward_of_;  // by op: the first backward call that refers to it
};

/// The rows of the ledger in these layers, with the columns of their makers and consumers. Tensors
/// with the same name and place in several layers are summed. A cast that the recorder could only
/// name after its op ("to_copy_output") is named after the tensor that it copies.
std::vector<FlowTensor> collect_saved_tensors(const Trace& trace, const Ledger& ledger,
                                              const LayerRange& layers, const FlowCalls& calls) {
    return Collector(trace, layers, calls).collect(ledger);
}

/// Both directions use these, so they do not tell that a forward runs again.
bool is_plain(std::string_view name) {
    constexpr std::array<std::string_view, 22> kPlain{
        "add",   "add_",       "sub",   "mul",        "mul_",   "div",   "div_",     "neg",
        "sum",   "mm",         "bmm",   "addmm",      "matmul", "copy_", "_to_copy", "to",
        "clone", "contiguous", "empty", "empty_like", "zeros",  "fill_"};
    const std::string call = short_call_name(name);
    return std::ranges::find(kPlain, call) != kPlain.end();
}

/// Goes through the calls of a layer in the order of time and says in which column each lies.
struct Walk {
    std::size_t current = kOutside;
    std::string current_module;
    std::map<std::string, int> runs;  // of each module so far
};

struct Place {
    int32_t column = -1;
    bool in_backward = false;
    bool recomputed = false;
};

class FlowBuilder {
public:
    FlowBuilder(const Trace& trace, const LayerRange& layers) : trace_(trace), layers_(layers) {}

    LayerFlow build(const Ledger& ledger) {
        if (!find_phases()) return {};
        mark_computing_ops();
        collect_ops();
        find_containers();
        for (auto& [layer, ops] : ops_of_layer_) place_layer(ops);
        add_times();
        finish_columns();
        add_tensors(ledger);
        return std::move(flow_);
    }

private:
    // ---- what to look at ---------------------------------------------------------------------

    /// The phases of the last micro-batch, from its forward on, as in the ledger.
    bool find_phases() {
        kinds_.assign(trace_.phases.size(), std::nullopt);
        const Id<Phase> last = last_forward_of(trace_);
        if (!last.valid()) return false;
        const Id<Step> step = trace_.phases.get<&Phase::step>(last);
        for (std::size_t i = 0; i < trace_.phases.size(); ++i) {
            const Phase phase = trace_.phases[Id<Phase>(i)];
            const bool is_before = phase.last_event < trace_.phases.get<&Phase::last_event>(last);
            if (phase.step == step && !is_before && phase.kind != PhaseKind::kOptimizer) {
                kinds_[i] = phase.kind;
            }
        }
        return true;
    }

    std::optional<PhaseKind> kind_of(Id<Op> op) const {
        const Id<Phase> phase = trace_.ops.get<&Op::phase>(op);
        return phase.valid() ? kinds_[phase.index()] : std::nullopt;
    }
    int64_t layer_of(Id<Op> op) const {
        const Id<ModulePath> module = trace_.ops.get<&Op::module_path>(op);
        return module.valid() ? trace_.module_paths.get<&ModulePath::layer>(module) : -1;
    }

    /// A call computes if it, or a call in it, writes elements or saves something.
    void mark_computing_ops() {
        computes_.assign(trace_.ops.size(), 0);
        const auto flop = trace_.ops.column<&Op::flop>();
        const auto written = trace_.ops.column<&Op::written_words>();
        for (std::size_t i = 0; i < computes_.size(); ++i) {
            if (flop[i] > 0 || written[i] > 0) mark(Id<Op>(i));
        }
        const auto saved_by = trace_.saves.column<&Save::op>();
        for (const Id<Op> op : saved_by) mark(op);
        const auto allocated_by = trace_.allocations.column<&Allocation::op>();
        for (const Id<Op> op : allocated_by) mark(op);
    }
    std::string_view path_in_layer(Id<ModulePath> module) const {
        const std::string_view path = path_of_module(trace_, module);
        return split_layer_path(path, layer_path_of(trace_, module)).inside;
    }

    /// Stops at a call that is marked already, so a circle of parents ends too.
    void mark(Id<Op> op) {
        while (op.valid() && !computes_[op.index()]) {
            computes_[op.index()] = 1;
            op = trace_.ops.get<&Op::parent>(op);
        }
    }

    void collect_ops() {
        const auto start = trace_.ops.column<&Op::start_ns>();
        for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
            const Id<Op> op(i);
            if (!kind_of(op)) continue;
            const int64_t layer = layer_of(op);
            if (layer >= 0 && layers_.contains(layer)) ops_of_layer_[layer].push_back(op);
        }
        for (auto& [layer, ops] : ops_of_layer_) {
            std::ranges::sort(ops, [&](Id<Op> a, Id<Op> b) {
                return std::pair(start[a.index()], a) < std::pair(start[b.index()], b);
            });
        }
        places_.assign(trace_.ops.size(), {});
    }

    /// Modules that hold other modules. Their own calls are told apart by name.
    void find_containers() {
        std::set<std::string> paths;
        for (std::size_t i = 0; i < trace_.module_paths.size(); ++i) {
            const ModulePath module = trace_.module_paths[Id<ModulePath>(i)];
            if (module.layer < 0 || !layers_.contains(module.layer)) continue;
            paths.emplace(path_in_layer(Id<ModulePath>(i)));
        }
        for (const std::string& path : paths) {
            for (std::size_t dot = path.rfind('.'); dot != std::string::npos;
                 dot = dot > 0 ? path.rfind('.', dot - 1) : std::string::npos) {
                containers_.insert(path.substr(0, dot));
            }
        }
        containers_.insert("");
    }

    // ---- columns -----------------------------------------------------------------------------

    void place_layer(const std::vector<Id<Op>>& ops) {
        Walk forward, replay;
        std::map<std::string_view, std::size_t> last_of_module;
        for (const Id<Op> id : ops) {
            const Op op = trace_.ops[id];
            if (inherit(id, op)) continue;
            const bool in_backward = kind_of(id) == PhaseKind::kBackward;
            const bool again = in_backward && runs_again(trace_, id);
            const std::string_view path = path_in_layer(op.module_path);
            std::size_t column = kOutside;
            if (!in_backward || again) {
                if (!computes_[id.index()]) continue;
                column = enter(again ? replay : forward, path, trace_.text(op.name));
                last_of_module[path] = column;
            } else {
                // A call in another module than its forward op is the backward of what ran there.
                const auto found = last_of_module.find(path);
                const bool has_own_module =
                    op.forward.valid() && found != last_of_module.end() &&
                    trace_.ops.get<&Op::module_path>(op.forward) != op.module_path;
                column = has_own_module ? kOutside : column_of_forward(op.forward);
                if (column == kOutside && found != last_of_module.end()) column = found->second;
                if (column == kOutside) continue;
            }
            place(id, op, {static_cast<int32_t>(column), in_backward, again}, true);
        }
    }

    /// A call inside another call of the same module stands where that stands. Returns true if
    /// there is nothing more to do.
    bool inherit(Id<Op> id, const Op& op) {
        if (!op.parent.valid()) return false;
        const Op parent = trace_.ops[op.parent];
        if (parent.module_path != op.module_path || parent.phase != op.phase) return false;
        // Calls of a checkpoint stand for themselves, also those of the layer's own module.
        if (is_checkpoint_call(trace_.text(parent.name)) &&
            !is_autograd_node(trace_.text(op.name))) {
            return false;
        }
        Place where = places_[op.parent.index()];
        if (where.column < 0) return true;
        where.recomputed = where.recomputed || (where.in_backward && runs_forward_again(op));
        place(id, op, where, false);
        return true;
    }

    bool runs_forward_again(const Op& op) const {
        const std::string_view name = trace_.text(op.name);
        if (name.ends_with("_recompute")) return true;
        if (!op.forward.valid() || is_plain(name)) return false;
        const int32_t column = places_[op.forward.index()].column;
        if (column < 0) return false;
        const auto& names = forward_names_[static_cast<std::size_t>(column)];
        return computing(name) && names.contains(name);
    }
    bool computing(std::string_view name) const { return computing_names_.contains(name); }

    std::size_t column_of_forward(Id<Op> forward) const {
        if (!forward.valid()) return kOutside;
        const int32_t column = places_[forward.index()].column;
        return column < 0 ? kOutside : static_cast<std::size_t>(column);
    }

    std::size_t enter(Walk& walk, std::string_view path, std::string_view op_name) {
        std::string module(path);
        if (containers_.contains(module)) module += "/" + short_call_name(op_name);
        if (walk.current != kOutside && module == walk.current_module) return walk.current;
        const std::string key = module + "#" + std::to_string(walk.runs[module]++);
        const auto [entry, is_new] = column_of_key_.emplace(key, flow_.columns.size());
        if (is_new) {
            flow_.columns.push_back({.key = key, .path = std::string(path)});
            forward_names_.emplace_back();
            weights_.emplace_back();
            // After the column that ran before it in this layer.
            const auto before = std::ranges::find(order_, walk.current);
            order_.insert(before == order_.end()
                              ? (walk.current == kOutside ? order_.begin() : before)
                              : before + 1,
                          entry->second);
        }
        walk.current_module = std::move(module);
        return walk.current = entry->second;
    }

    void place(Id<Op> id, const Op& op, const Place& where, bool is_outermost) {
        places_[id.index()] = where;
        placed_.push_back(id);
        const auto column = static_cast<std::size_t>(where.column);
        FlowNode& node =
            where.in_backward ? flow_.columns[column].backward : flow_.columns[column].forward;
        node.recomputes = node.recomputes || where.recomputed;
        const std::string_view name = trace_.text(op.name);
        if (!where.in_backward) {
            forward_names_[column].insert(name);
            if (op.flop > 0 || op.written_words > 0) computing_names_.insert(name);
        }
        const auto weight = static_cast<double>(std::max<int64_t>(op.end_ns - op.start_ns, 0)) + 1;
        if (op.op_class != OpClass::kOther) {
            weights_[column][where.in_backward][static_cast<std::size_t>(op.op_class)] += weight;
        }
        if (!is_outermost) return;
        if (!node.op.valid()) node.op = id;
        if (!computes_[id.index()]) return;
        std::string call = short_call_name(name);
        if (node.calls.size() < kMostCalls &&
            std::ranges::find(node.calls, call) == node.calls.end()) {
            node.calls.push_back(std::move(call));
        }
    }

    // ---- times -------------------------------------------------------------------------------

    void add_time(const Place& where, int64_t duration_ns) {
        if (where.column < 0) return;
        FlowColumn& column = flow_.columns[static_cast<std::size_t>(where.column)];
        FlowNode& node = where.in_backward ? column.backward : column.forward;
        node.duration_ns += duration_ns;
        if (where.recomputed) node.recomputed_ns += duration_ns;
    }

    void add_times() {
        if (trace_.kernels.empty()) {
            // Each call without the calls in it, so that nothing counts twice.
            for (const Id<Op> id : placed_) {
                const Op op = trace_.ops[id];
                const int64_t duration_ns = std::max<int64_t>(op.end_ns - op.start_ns, 0);
                add_time(places_[id.index()], duration_ns);
                if (op.parent.valid()) add_time(places_[op.parent.index()], -duration_ns);
            }
        }
        const auto launch = [&](Id<Op> op, int64_t start_ns, int64_t end_ns) {
            if (op.valid()) add_time(places_[op.index()], std::max<int64_t>(end_ns - start_ns, 0));
        };
        for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
            const Id<Kernel> id(i);
            launch(trace_.kernels.get<&Kernel::op>(id), trace_.kernels.get<&Kernel::start_ns>(id),
                   trace_.kernels.get<&Kernel::end_ns>(id));
        }
        for (FlowColumn& column : flow_.columns) {
            for (FlowNode* node : {&column.forward, &column.backward}) {
                node->duration_ns = std::max<int64_t>(node->duration_ns, 0);
                node->recomputed_ns =
                    std::clamp<int64_t>(node->recomputed_ns, 0, node->duration_ns);
            }
        }
    }

    // ---- the result --------------------------------------------------------------------------

    OpClass heaviest(const std::array<double, kOpClassNames.size()>& weights) const {
        const auto most = std::ranges::max_element(weights);
        return *most > 0 ? static_cast<OpClass>(most - weights.begin()) : OpClass::kOther;
    }

    /// The module's own name, unless it holds others or is long: then the call.
    std::string title_of(const FlowColumn& column) const {
        constexpr std::size_t kLongest = 13;
        const auto& calls =
            column.forward.calls.empty() ? column.backward.calls : column.forward.calls;
        const std::string name = column.path.substr(column.path.rfind('.') + 1);
        const bool use_call = containers_.contains(column.path) || name.size() > kLongest;
        return use_call && !calls.empty() ? calls[0] : name;
    }

    /// Columns in the order of forward, without those for which there is no room.
    void finish_columns() {
        std::vector<std::size_t> kept = order_;
        if (kept.size() > LayerFlow::kMostColumns) {
            const auto time_of = [&](std::size_t i) {
                return flow_.columns[i].forward.duration_ns + flow_.columns[i].backward.duration_ns;
            };
            std::ranges::stable_sort(
                kept, [&](std::size_t a, std::size_t b) { return time_of(a) > time_of(b); });
            flow_.columns_left_out = kept.size() - LayerFlow::kMostColumns;
            kept.resize(LayerFlow::kMostColumns);
        }
        std::vector<int32_t> new_index(flow_.columns.size(), -1);
        std::vector<FlowColumn> columns;
        for (const std::size_t i : order_) {
            if (std::ranges::find(kept, i) == kept.end()) continue;
            new_index[i] = static_cast<int32_t>(columns.size());
            FlowColumn& column = columns.emplace_back(std::move(flow_.columns[i]));
            column.forward.op_class = heaviest(weights_[i][0]);
            column.backward.op_class = heaviest(weights_[i][1]);
            column.title = title_of(column);
            flow_.forward_ns += column.forward.duration_ns;
            flow_.backward_ns += column.backward.duration_ns;
            flow_.recomputed_ns += column.backward.recomputed_ns;
        }
        flow_.columns = std::move(columns);
        std::ranges::sort(placed_);
        for (const Id<Op> op : placed_) {
            Place& place = places_[op.index()];
            place.column = new_index[static_cast<std::size_t>(place.column)];
            if (place.column < 0) continue;
            flow_.places.push_back({op, static_cast<std::size_t>(place.column), place.in_backward});
        }
    }

    void add_tensors(const Ledger& ledger) {
        const auto place_of = [&](Id<Op> op) -> FlowPlace {
            if (!op.valid() || places_[op.index()].column < 0) return {op};
            const Place& place = places_[op.index()];
            return {op, static_cast<std::size_t>(place.column), place.in_backward};
        };
        const auto kind_of = [&](Id<Op> op) { return this->kind_of(op); };
        flow_.tensors = collect_saved_tensors(trace_, ledger, layers_, {place_of, kind_of});
        for (FlowTensor& tensor : flow_.tensors) {
            flow_.size_bytes += tensor.size_bytes;
            for (std::string& op : tensor.kept_by) op = short_call_name(op);
        }
    }

    static constexpr std::size_t kMostCalls = 4;

    const Trace& trace_;
    const LayerRange layers_;
    std::vector<std::optional<PhaseKind>> kinds_;  // by phase; none: not of this step
    std::vector<char> computes_;                   // by op
    std::vector<Place> places_;                    // by op
    std::vector<Id<Op>> placed_;
    std::map<int64_t, std::vector<Id<Op>>> ops_of_layer_;
    std::set<std::string> containers_;
    std::map<std::string, std::size_t> column_of_key_;
    std::vector<std::size_t> order_;                         // of the columns in forward
    std::vector<std::set<std::string_view>> forward_names_;  // by column
    std::set<std::string_view> computing_names_;
    using ClassWeights = std::array<std::array<double, kOpClassNames.size()>, 2>;
    std::vector<ClassWeights> weights_;  // by column: forward, backward
    LayerFlow flow_;
};

}  // namespace

std::string short_call_name(std::string_view name) {
    const std::size_t node = name.find("CppNode<");
    std::string text =
        node == std::string_view::npos ? short_name(name) : std::string(name.substr(node + 8));
    if (node != std::string_view::npos && text.ends_with('>')) text.pop_back();
    const std::size_t colon = text.rfind("::");
    return colon == std::string::npos ? text : text.substr(colon + 2);
}

LayerFlow build_layer_flow(const Trace& trace, const Ledger& ledger, const LayerRange& layers) {
    return FlowBuilder(trace, layers).build(ledger);
}

}  // namespace profiler
