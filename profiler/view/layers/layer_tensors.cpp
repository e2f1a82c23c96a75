#include "profiler/view/layers/layer_tensors.h"

#include "profiler/analysis/step/layer_path.h"
#include "profiler/trace/text.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

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
        const std::string_view op = trace_.text(trace_.ops.get<&Op::name>(writer));
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
            if (std::find(also.begin(), also.end(), keeper.column) == also.end()) {
                also.push_back(keeper.column);
            }
        }
        for (const std::string_view op : row.saved_by) {
            auto& ops = tensor.kept_by;
            if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.emplace_back(op);
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

}  // namespace

std::vector<FlowTensor> collect_saved_tensors(const Trace& trace, const Ledger& ledger,
                                              const LayerRange& layers, const FlowCalls& calls) {
    return Collector(trace, layers, calls).collect(ledger);
}

}  // namespace profiler
