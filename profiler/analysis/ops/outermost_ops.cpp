#include "profiler/analysis/ops/outermost_ops.h"

#include "profiler/analysis/step/block_origin.h"
#include "profiler/analysis/step/layer_path.h"
#include "profiler/trace/element_bytes.h"

#include <algorithm>
#include <set>
#include <utility>

namespace profiler {
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
        if (is_copy(trace_.text(trace_.ops.get<&Op::name>(ops[i])))) {
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
    return {trace_.text(trace_.module_paths.get<&ModulePath::path>(module)),
            trace_.module_paths.get<&ModulePath::layer>(module), layer_path_of(trace_, module)};
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
    if (is_copy(trace_.text(trace_.ops.get<&Op::name>(op)))) {
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
