#include "profiler/planner/step/op_work.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/step/published_tempo.h"
#include "profiler/trace/enumerations.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>

namespace profiler {
namespace {

/// "[4096, 1024]" as numbers; empty if the text has none.
std::vector<int64_t> parse_shape(std::string_view text) {
    std::vector<int64_t> sizes;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] < '0' || text[at] > '9') {
            ++at;
            continue;
        }
        int64_t value = 0;
        const auto end = std::from_chars(text.data() + at, text.data() + text.size(), value).ptr;
        sizes.push_back(value);
        at = static_cast<std::size_t>(end - text.data());
    }
    return sizes;
}

/// One tensor that an op reads or writes.
struct Edge {
    Id<Tensor> tensor;
    Access access = Access::kRead;
    int64_t words = 0;
};

class WorkReader {
public:
    WorkReader(const Trace& trace, const OpWorkDefaults& defaults)
        : trace_(trace), defaults_(defaults) {
        const auto ops = trace.op_tensors.column<&OpTensor::op>();
        const auto tensors = trace.op_tensors.column<&OpTensor::tensor>();
        const auto accesses = trace.op_tensors.column<&OpTensor::access>();
        const auto words = trace.op_tensors.column<&OpTensor::words>();
        edges_.resize(trace.ops.size());
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!ops[i].valid() || !tensors[i].valid()) continue;
            edges_[ops[i].index()].push_back({tensors[i], accesses[i], words[i]});
        }
    }

    bool has_cost(Id<Op> op) const {
        return trace_.ops.get<&Op::flop>(op) > 0 || trace_.ops.get<&Op::read_words>(op) > 0 ||
               trace_.ops.get<&Op::written_words>(op) > 0;
    }

    /// The kernels of an op. Requires an op in a phase.
    void append_work(Id<Op> op, std::vector<OpWork>& ops) {
        const PhaseKind phase = trace_.phases.get<&Phase::kind>(trace_.ops.get<&Op::phase>(op));
        const OpWork work{op, phase, trace_.ops.get<&Op::op_class>(op), work_of(op)};
        if (defaults_.implementation == models::Implementation::kPublished) {
            append_published(trace_.text(trace_.ops.get<&Op::name>(op)), work, published_op(op),
                             ops);
        } else {
            ops.push_back(work);
        }
    }

    bool has_shapes() const { return has_shapes_; }

private:
    KernelWork work_of(Id<Op> op) {
        const std::string_view name = trace_.text(trace_.ops.get<&Op::name>(op));
        const OpClass op_class = trace_.ops.get<&Op::op_class>(op);
        KernelWork work{.kernel = kernel_of(name, op_class),
                        .type = type_of(op),
                        .flop = trace_.ops.get<&Op::flop>(op),
                        .moved_bytes = moved_bytes(op, name),
                        .shape = {},
                        .is_own = name.starts_with("tempo::")};
        if (is_gemm(work.kernel)) {
            work.shape = name.find("convolution") == name.npos ? shape_of(op, work.flop)
                                                               : convolution_shape(op, work.flop);
        }
        if (work.kernel == KernelKind::kSoftmax) work.columns = columns_of(op);
        if (name.ends_with("copy_") && !changes_layout(op)) work.kernel = KernelKind::kElementWise;
        return work;
    }

    /// Number and size of the elements of the op's first tensor.
    PublishedOp published_op(Id<Op> op) const {
        if (edges(op).empty()) return {.words = 0, .word_bytes = defaults_.word_bytes};
        const Edge& first = edges(op).front();
        return {.words = first.words,
                .word_bytes = likely_element_bytes(dtype(first)),
                .has_mask = edges(op).size() > 1 && edges(op)[1].access == Access::kRead};
    }

    const std::vector<Edge>& edges(Id<Op> op) const { return edges_[op.index()]; }
    DType dtype(const Edge& edge) const { return trace_.tensors.get<&Tensor::dtype>(edge.tensor); }

    /// A copy overwrites its first argument without reading it. An op that returns nothing writes
    /// into its first argument.
    int64_t moved_bytes(Id<Op> op, std::string_view name) const {
        const bool is_copy = name.ends_with("copy_");
        int64_t bytes = 0;
        bool first = true;
        bool returns_nothing = true;
        for (const Edge& edge : edges(op)) {
            if (!(is_copy && first)) bytes += edge.words * likely_element_bytes(dtype(edge));
            returns_nothing &= edge.access == Access::kRead;
            first = false;
        }
        if (returns_nothing && !edges(op).empty()) {
            bytes += trace_.ops.get<&Op::written_words>(op) *
                     likely_element_bytes(dtype(edges(op).front()));
        }
        // A lookup reads only the rows that it gathers, not the whole table.
        if (name == "aten::embedding") bytes = 0;
        if (bytes > 0) return bytes;
        return (trace_.ops.get<&Op::read_words>(op) + trace_.ops.get<&Op::written_words>(op)) *
               defaults_.word_bytes;
    }

    /// The type of the factors. fp32 factors multiply as tf32 if the precision says so.
    MatmulType type_of(Id<Op> op) const {
        for (const Edge& edge : edges(op)) {
            if (dtype(edge) == DType::kFloat16) return MatmulType::kFp16;
            if (dtype(edge) == DType::kBFloat16) return MatmulType::kBf16;
        }
        if (edges(op).empty()) return defaults_.type;
        return defaults_.type == MatmulType::kTf32 ? MatmulType::kTf32 : MatmulType::kFp32;
    }

    /// From the last two tensors that the op reads: [.., m, k] and [.., k, n].
    GemmShape shape_of(Id<Op> op, int64_t flop) {
        std::vector<std::vector<int64_t>> factors;
        for (const Edge& edge : edges(op)) {
            if (edge.access != Access::kRead) continue;
            factors.push_back(
                parse_shape(trace_.text(trace_.tensors.get<&Tensor::shape>(edge.tensor))));
        }
        if (factors.size() >= 2) {
            const auto& a = factors[factors.size() - 2];
            const auto& b = factors.back();
            if (a.size() == b.size() && (a.size() == 2 || a.size() == 3)) {
                const GemmShape shape{.batch = a.size() == 3 ? a.front() : 1,
                                      .m = a[a.size() - 2],
                                      .n = b.back(),
                                      .k = a.back()};
                if (2 * shape.batch * shape.m * shape.n * shape.k == flop) return shape;
            }
        }
        return shape_without_factors(op, flop);
    }

    /// A convolution is a GEMM of its windows [m, k] and its weight [n, k..], the last tensor with
    /// more than one dimension that it reads. Backward, which is two of them, is one with 2 m.
    GemmShape convolution_shape(Id<Op> op, int64_t flop) {
        GemmShape shape;
        for (const Edge& edge : edges(op)) {
            const auto sizes =
                parse_shape(trace_.text(trace_.tensors.get<&Tensor::shape>(edge.tensor)));
            if (edge.access != Access::kRead || sizes.size() < 2) continue;
            shape.n = std::max<int64_t>(sizes.front(), 1);
            shape.k = std::max<int64_t>(edge.words / shape.n, 1);
        }
        shape.m = shape.n > 0 ? flop / (2 * shape.n) / shape.k : 0;
        return shape.m > 0 ? shape : shape_without_factors(op, flop);
    }

    /// Of the first tensor; 0: it is not in the trace.
    int64_t columns_of(Id<Op> op) const {
        if (edges(op).empty()) return 0;
        const Id<Tensor> first = edges(op).front().tensor;
        const auto sizes = parse_shape(trace_.text(trace_.tensors.get<&Tensor::shape>(first)));
        return sizes.empty() ? 0 : sizes.back();
    }

    GemmShape shape_without_factors(Id<Op> op, int64_t flop) {
        has_shapes_ = false;
        const int64_t written = std::max<int64_t>(trace_.ops.get<&Op::written_words>(op), 1);
        return {.k = std::max<int64_t>(flop / (2 * written), 1)};
    }

    /// A copy between equal types changes the layout; a copy between different types is a cast.
    bool changes_layout(Id<Op> op) const {
        std::optional<DType> from;
        std::optional<DType> to;
        for (const Edge& edge : edges(op)) {
            (edge.access == Access::kRead ? from : to) = dtype(edge);
        }
        return from && to && *from == *to;
    }

    const Trace& trace_;
    OpWorkDefaults defaults_;
    std::vector<std::vector<Edge>> edges_;  // by op
    bool has_shapes_ = true;
};

bool is_in_step(const Trace& trace, Id<Op> op, Id<Step> step) {
    const Id<Phase> phase = trace.ops.get<&Op::phase>(op);
    return phase.valid() && trace.phases.get<&Phase::step>(phase) == step;
}

KernelKind contraction_of(std::string_view name) {
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (has("efficient_attention")) return KernelKind::kEfficientAttention;
    if (has("attention")) return KernelKind::kFlashAttention;
    return has("bmm") ? KernelKind::kBatchedGemm : KernelKind::kGemm;
}

/// By op: whether it, or an op inside it, gave the GPU work. A dispatch mode may answer in place of
/// an op, as a selective checkpoint does when it computes again. All, where no work is recorded.
std::vector<bool> ops_with_work(const Trace& trace) {
    if (trace.kernels.empty()) return std::vector<bool>(trace.ops.size(), true);
    std::vector<bool> have_work(trace.ops.size(), false);
    const auto parents = trace.ops.column<&Op::parent>();
    const auto mark = [&](std::span<const Id<Op>> launchers) {
        for (Id<Op> op : launchers) {
            for (; op.valid() && !have_work[op.index()]; op = parents[op.index()]) {
                have_work[op.index()] = true;
            }
        }
    };
    mark(trace.kernels.column<&Kernel::op>());
    mark(trace.memcpys.column<&Memcpy::op>());
    return have_work;
}

/// Takes the work from ops of tensors that are spread over GPUs (DTensor): the op of the same name
/// inside them has the sizes of this GPU's part.
void drop_wrappers(const Trace& trace, std::vector<bool>& have_work) {
    const auto names = trace.ops.column<&Op::name>();
    const auto parents = trace.ops.column<&Op::parent>();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!have_work[i]) continue;
        std::size_t inner = i;  // an op begins after those around it, unless a file says otherwise
        for (Id<Op> op = parents[i]; op.valid() && op.index() < inner; op = parents[op.index()]) {
            inner = op.index();
            if (names[op.index()] == names[i]) have_work[op.index()] = false;
        }
    }
}

/// By op: the bytes that it copies between the GPU and the host, where it runs no kernel.
std::map<Id<Op>, int64_t> host_copies(const Trace& trace) {
    std::map<Id<Op>, int64_t> bytes;
    for (const Memcpy copy : trace.memcpys.rows()) {
        const std::string_view kind = trace.text(copy.kind);
        const bool is_of_host = kind == "host_to_device" || kind == "device_to_host";
        if (copy.op.valid() && is_of_host) bytes[copy.op] += copy.size_bytes;
    }
    for (const Id<Op> op : trace.kernels.column<&Kernel::op>()) bytes.erase(op);
    return bytes;
}

/// `is_counted`: by op, with the ops inside counted ones.
void append_launches(const Trace& trace, Id<Step> step, const std::vector<bool>& is_counted,
                     std::vector<OpWork>& ops) {
    std::map<Id<Op>, double> bytes;
    for (const Kernel kernel : trace.kernels.rows()) {
        if (!kernel.op.valid() || is_counted[kernel.op.index()]) continue;
        if (is_in_step(trace, kernel.op, step)) {
            bytes[kernel.op] += threads_of(kernel) * kBytesOfThread;
        }
    }
    constexpr double kMost = 0x1p62;  // a damaged file may say any grid
    for (const auto& [op, moved] : bytes) {
        const Id<Phase> phase = trace.ops.get<&Op::phase>(op);
        ops.push_back({.op = op,
                       .phase = trace.phases.get<&Phase::kind>(phase),
                       .op_class = trace.ops.get<&Op::op_class>(op),
                       .work = {.moved_bytes = static_cast<int64_t>(std::min(moved, kMost))}});
    }
    std::ranges::stable_sort(ops, {}, &OpWork::op);
}

}  // namespace

KernelKind kernel_of(std::string_view op_name, OpClass op_class) {
    const auto has = [&](std::string_view part) { return op_name.find(part) != op_name.npos; };
    switch (op_class) {
        case OpClass::kContraction:
            return contraction_of(op_name);
        case OpClass::kNormalization:
            // log_softmax's backward passes over its data once.
            if (has("softmax")) {
                return has("backward") && !has("log_softmax") ? KernelKind::kSoftmaxBackward
                                                              : KernelKind::kSoftmax;
            }
            if (has("residual") || has("scale_shift")) return KernelKind::kFusedNorm;
            return has("backward") ? KernelKind::kLayerNormBackward : KernelKind::kLayerNorm;
        case OpClass::kElementWise:
            if (has("bias_heads")) return KernelKind::kTransposingCopy;
            if (op_name == "aten::sum" || op_name == "tempo::bias_backward")
                return KernelKind::kColumnReduction;
            if (has("tempo::gelu_backward")) return KernelKind::kGeluBackward;
            return op_name.ends_with("copy_") ? KernelKind::kTransposingCopy
                                              : KernelKind::kElementWise;
        case OpClass::kOther:
            return KernelKind::kGather;
    }
    return KernelKind::kElementWise;
}

OpWorkDefaults defaults_of(const models::Workload& workload) {
    return {.type = matmul_type_of(workload.precision).value_or(MatmulType::kFp32),
            .word_bytes = models::weight_bytes(workload.precision),
            .implementation = workload.recipe.implementation};
}

models::Result<OpWorkDefaults> defaults_of(const Trace& trace) {
    if (const auto workload = workload_of(trace)) return defaults_of(*workload);
    const auto program = program_of(trace);
    if (!program) return models::fail("The trace does not say which workload it ran.");
    const auto precision =
        models::parse_precision(program->precision).value_or(models::Precision::kFp32);
    const auto type = matmul_type_of(precision);
    if (!type) return models::fail("Steps in {} are not modelled.", program->precision);
    return OpWorkDefaults{
        .type = *type, .word_bytes = models::weight_bytes(precision), .is_program = true};
}

StepOps ops_of_step(const Trace& trace, Id<Step> step, const OpWorkDefaults& defaults) {
    StepOps result;
    WorkReader reader(trace, defaults);
    const auto phases = trace.ops.column<&Op::phase>();
    const auto parents = trace.ops.column<&Op::parent>();
    std::vector<bool> is_inside(trace.ops.size(), false);  // a counted op, itself included
    std::vector<bool> have_work(trace.ops.size(), true);
    std::map<Id<Op>, int64_t> copied_bytes;
    if (defaults.is_program) {
        copied_bytes = host_copies(trace);
        have_work = ops_with_work(trace);
        drop_wrappers(trace, have_work);
    }
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const Id<Op> op(i);
        const bool has_cost = have_work[i] && reader.has_cost(op);
        const bool parent_inside = parents[i].valid() && is_inside[parents[i].index()];
        is_inside[i] = has_cost || parent_inside;
        if (!has_cost || parent_inside || !is_in_step(trace, op, step)) continue;
        const bool is_update = trace.phases.get<&Phase::kind>(phases[i]) == PhaseKind::kOptimizer;
        if (is_update && !defaults.is_program) continue;
        reader.append_work(op, result.ops);
        if (const auto copied = copied_bytes.find(op); copied != copied_bytes.end()) {
            result.ops.back().work = {.kernel = KernelKind::kHostCopy,
                                      .moved_bytes = copied->second};
        }
    }
    if (defaults.is_program) append_launches(trace, step, is_inside, result.ops);
    result.has_shapes = reader.has_shapes();
    return result;
}

std::vector<OpWork> counted_ops_of_step(const Trace& trace, Id<Step> step,
                                        const OpWorkDefaults& defaults) {
    std::vector<OpWork> ops;
    WorkReader reader(trace, defaults);
    for (const Id<Op> op : trace.ops.ids()) {
        if (reader.has_cost(op) && is_in_step(trace, op, step)) reader.append_work(op, ops);
    }
    return ops;
}

double threads_of(const Kernel& kernel) {
    const auto extent = [](int64_t size) {
        return static_cast<double>(std::max<int64_t>(size, 1));
    };
    return extent(kernel.grid_x) * extent(kernel.grid_y) * extent(kernel.grid_z) *
           extent(kernel.block_x) * extent(kernel.block_y) * extent(kernel.block_z);
}

}  // namespace profiler
