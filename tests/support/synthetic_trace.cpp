#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace tests {
using namespace profiler;

namespace {

/// One op of a layer's forward pass and what it saves for backward.
struct OpShape {
    std::string_view module_path;
    std::string_view name;
    std::string_view output;  // name of the tensor it returns
    bool square;              // [B, A, S, S] instead of [B, S, width]
    int width;                // width of the output as a multiple of the hidden size
    bool saved;               // the output is saved for backward
    bool has_mask;            // a mask of one byte per element is saved for backward
    int num_parameters;       // 2: weight and bias; 0: none
    OpClass op_class;
};

using enum OpClass;

constexpr std::array<OpShape, 13> kOriginalLayer{{
    {"attention.self.query", "aten::addmm", "query", false, 1, true, false, 2, kContraction},
    {"attention.self.key", "aten::addmm", "key", false, 1, true, false, 2, kContraction},
    {"attention.self.value", "aten::addmm", "value", false, 1, true, false, 2, kContraction},
    {"attention.self.scores", "aten::bmm", "scores", true, 1, false, false, 0, kContraction},
    {"attention.self.softmax", "aten::_softmax", "probs", true, 1, true, false, 0, kNormalization},
    {"attention.self.dropout", "tempo::dropout", "probs_dropped", true, 1, true, true, 0,
     kElementWise},
    {"attention.self.context", "aten::bmm", "context", false, 1, true, false, 0, kContraction},
    {"attention.output.dense", "aten::addmm", "projected", false, 1, false, true, 2, kContraction},
    {"attention.output.LayerNorm", "aten::native_layer_norm", "attended", false, 1, true, false, 2,
     kNormalization},
    {"intermediate.dense", "aten::addmm", "gelu_input", false, 4, true, false, 2, kContraction},
    {"intermediate.gelu", "aten::gelu", "gelu_output", false, 4, true, false, 0, kElementWise},
    {"output.dense", "aten::addmm", "reduced", false, 1, false, true, 2, kContraction},
    {"output.LayerNorm", "aten::native_layer_norm", "hidden", false, 1, true, false, 2,
     kNormalization},
}};

/// Thrown when the requested number of allocations is reached.
struct Enough {};

class Builder {
public:
    explicit Builder(const SyntheticTraceOptions& options) : options_(options) {
        describe_run();
        cpu_ = trace_.devices.append({.name = text("cpu"), .total_bytes = int64_t{64} << 30});
        main_thread_ = trace_.threads.append({.name = text("main"), .system_id = 4711});
        autograd_thread_ = trace_.threads.append({.name = text("autograd"), .system_id = 4712});
        make_module_paths();
    }

    Trace build() {
        try {
            make_parameters();
            for (;;) run_step();
        } catch (const Enough&) {
            close_step();
        }
        return std::move(trace_);
    }

private:
    struct Saved {
        Id<Storage> storage;
        Id<Save> save;
    };
    struct ForwardOp {
        const OpShape* shape;
        Id<Op> op;
        Id<ModulePath> module_path;
        std::vector<Saved> saved;
    };

    StringId text(std::string_view value) { return trace_.strings.intern(value); }

    void describe_run() {
        trace_.runs.append({.source = Source::kMeasuredCpu,
                            .state = RunState::kComplete,
                            .workload = text("{}"),
                            .model = text("synthetic"),
                            .head = text("layers"),
                            .recipe = text(options_.in_place ? "tempo" : "original"),
                            .recipe_per_layer = text("[]"),
                            .precision = text("fp32"),
                            .device_name = text("synthetic"),
                            .software = text("{}"),
                            .allocator_settings = text(""),
                            .num_layers = options_.num_layers,
                            .batch_size = options_.batch_size,
                            .seq_len = options_.seq_len,
                            .num_threads = 2});
    }

    void make_module_paths() {
        const Id<ModulePath> encoder =
            trace_.module_paths.append({.path = text("encoder"), .parent = {}});
        for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
            const std::string path = fmt::format("encoder.layer.{}", layer);
            const Id<ModulePath> parent =
                trace_.module_paths.append({.path = text(path), .parent = encoder, .layer = layer});
            for (const OpShape& shape : kOriginalLayer) {
                module_paths_.push_back(trace_.module_paths.append(
                    {.path = text(fmt::format("{}.{}", path, shape.module_path)),
                     .parent = parent,
                     .layer = layer}));
            }
        }
        optimizer_module_path_ =
            trace_.module_paths.append({.path = text("optimizer"), .parent = {}});
    }

    Id<ModulePath> module_path_of(int64_t layer, std::size_t op) const {
        return module_paths_[static_cast<std::size_t>(layer) * kOriginalLayer.size() + op];
    }

    int64_t elements(const OpShape& shape) const {
        return shape.square
                   ? options_.batch_size * options_.num_heads * options_.seq_len * options_.seq_len
                   : options_.batch_size * options_.seq_len * options_.hidden_size * shape.width;
    }

    std::string shape_text(const OpShape& shape) const {
        return shape.square ? fmt::format("[{}, {}, {}, {}]", options_.batch_size,
                                          options_.num_heads, options_.seq_len, options_.seq_len)
                            : fmt::format("[{}, {}, {}]", options_.batch_size, options_.seq_len,
                                          options_.hidden_size * shape.width);
    }

    Id<Op> begin_op(std::string_view name, Id<ModulePath> module_path, Id<Op> forward,
                    OpClass op_class, int64_t elements) {
        clock_ns_ += 1'000;
        const Id<Op> op =
            trace_.ops.append({.name = text(name),
                               .module_path = module_path,
                               .phase = phase_,
                               .thread = forward.valid() ? autograd_thread_ : main_thread_,
                               .parent = {},
                               .forward = forward,
                               .start_ns = clock_ns_,
                               .end_ns = clock_ns_,
                               .flop = elements * 2,
                               .read_words = elements,
                               .written_words = elements,
                               .op_class = op_class});
        op_ = op;
        clock_ns_ += 200 + elements / 8;
        return op;
    }

    void end_op() {
        clock_ns_ += 500;
        trace_.ops.set<&Op::end_ns>(op_, clock_ns_);
        op_ = {};
    }

    /// Reuses a freed block of the same size if there is one. So live blocks never overlap.
    int64_t take_address(int64_t bytes) {
        auto& free_list = free_addresses_[bytes];
        if (!free_list.empty()) {
            const int64_t address = free_list.back();
            free_list.pop_back();
            return address;
        }
        const int64_t address = next_address_;
        next_address_ += bytes;
        return address;
    }

    Id<Tensor> allocate(int64_t bytes, Category category, std::string_view name,
                        std::string_view shape, DType dtype = DType::kFloat32) {
        if (static_cast<int64_t>(trace_.allocations.size()) == options_.num_allocations)
            throw Enough{};
        clock_ns_ += 150;
        const int64_t block_bytes = (bytes + 63) / 64 * 64;
        const Id<Storage> storage(trace_.storages.size());
        const Id<profiler::Allocation> allocation =
            trace_.allocations.append({.device = cpu_,
                                       .stream = {},
                                       .address = take_address(block_bytes),
                                       .requested_bytes = bytes,
                                       .block_bytes = block_bytes,
                                       .alloc_event = event_++,
                                       .alloc_ns = clock_ns_,
                                       .op = op_,
                                       .freeing_op = {},
                                       .storage = storage,
                                       .segment = {},
                                       .stack = {}});
        trace_.storages.append(
            {.allocation = allocation, .size_bytes = bytes, .category = category});
        const Id<Tensor> tensor = trace_.tensors.append({.storage = storage,
                                                         .name = text(name),
                                                         .shape = text(shape),
                                                         .strides = text("[1]"),
                                                         .dtype = dtype,
                                                         .producer = op_});
        if (op_.valid()) {
            trace_.op_tensors.append(
                {.op = op_, .tensor = tensor, .access = Access::kWrite, .words = bytes / 4});
        }
        return tensor;
    }

    Id<Storage> storage_of(Id<Tensor> tensor) const {
        return trace_.tensors.get<&Tensor::storage>(tensor);
    }

    void release(Id<Storage> storage) {
        clock_ns_ += 80;
        const auto allocation = trace_.storages.get<&Storage::allocation>(storage);
        auto& table = trace_.allocations;
        table.set<&Allocation::free_requested_event>(allocation, event_);
        table.set<&Allocation::free_completed_event>(allocation, event_);
        table.set<&Allocation::free_requested_ns>(allocation, clock_ns_);
        table.set<&Allocation::free_completed_ns>(allocation, clock_ns_);
        table.set<&Allocation::freeing_op>(allocation, op_);
        ++event_;
        free_addresses_[table.get<&Allocation::block_bytes>(allocation)].push_back(
            table.get<&Allocation::address>(allocation));
    }

    void make_parameters() {
        for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
            for (std::size_t i = 0; i < kOriginalLayer.size(); ++i) {
                const OpShape& shape = kOriginalLayer[i];
                for (int p = 0; p < shape.num_parameters; ++p) make_parameter(layer, i, p == 0);
            }
        }
    }

    int64_t parameter_bytes(const OpShape& shape, bool is_weight) const {
        const int64_t width = options_.hidden_size * shape.width;
        const bool is_matrix = is_weight && shape.op_class == kContraction;
        return 4 * width * (is_matrix ? options_.hidden_size : 1);
    }

    void make_parameter(int64_t layer, std::size_t op, bool is_weight) {
        const OpShape& shape = kOriginalLayer[op];
        const std::string name = fmt::format("encoder.layer.{}.{}.{}", layer, shape.module_path,
                                             is_weight ? "weight" : "bias");
        const int64_t bytes = parameter_bytes(shape, is_weight);
        const std::string dims = fmt::format("[{}]", bytes / 4);
        allocate(bytes, Category::kParameter, name, dims);
        allocate(bytes, Category::kOptimizerState, name + ".exp_avg", dims);
        allocate(bytes, Category::kOptimizerState, name + ".exp_avg_sq", dims);
    }

    void begin_phase(PhaseKind kind) {
        close_phase();
        phase_ = trace_.phases.append({.step = step_,
                                       .kind = kind,
                                       .start_ns = clock_ns_,
                                       .end_ns = clock_ns_,
                                       .first_event = event_,
                                       .last_event = event_});
    }

    void close_phase() {
        if (!phase_.valid()) return;
        trace_.phases.set<&Phase::end_ns>(phase_, clock_ns_);
        trace_.phases.set<&Phase::last_event>(phase_, event_);
        phase_ = {};
    }

    void close_step() {
        close_phase();
        if (!step_.valid()) return;
        trace_.steps.set<&Step::end_ns>(step_, clock_ns_);
        trace_.steps.set<&Step::last_event>(step_, event_);
        step_ = {};
    }

    void run_step() {
        clock_ns_ += 10'000;
        step_ = trace_.steps.append({.start_ns = clock_ns_, .first_event = event_, .loss = 1.0});
        forward_.clear();
        begin_phase(PhaseKind::kForward);
        for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
            for (std::size_t i = 0; i < kOriginalLayer.size(); ++i) run_forward(layer, i);
        }
        begin_phase(PhaseKind::kLoss);
        begin_op("aten::mul", {}, {}, kElementWise, 1);
        release(storage_of(allocate(4, Category::kTemporary, "loss", "[]")));
        end_op();
        begin_phase(PhaseKind::kBackward);
        for (auto op = forward_.rbegin(); op != forward_.rend(); ++op) run_backward(*op);
        begin_phase(PhaseKind::kOptimizer);
        run_optimizer();
        close_step();
    }

    bool saves_output(const OpShape& shape) const {
        const bool dropped =
            options_.in_place && (shape.output == "gelu_input" || shape.output == "probs_dropped");
        return shape.saved && !dropped;
    }

    Saved save(Id<Tensor> tensor) {
        const Id<Storage> storage = storage_of(tensor);
        trace_.storages.set<&Storage::category>(storage, Category::kActivation);
        const Id<Save> save = trace_.saves.append(
            {.storage = storage, .tensor = tensor, .op = op_, .saved_event = event_});
        return {storage, save};
    }

    void run_forward(int64_t layer, std::size_t index) {
        const OpShape& shape = kOriginalLayer[index];
        const int64_t count = elements(shape);
        const Id<ModulePath> module_path = module_path_of(layer, index);
        ForwardOp forward{
            &shape, begin_op(shape.name, module_path, {}, shape.op_class, count), module_path, {}};
        if (last_output_.valid()) {
            trace_.op_tensors.append(
                {.op = op_, .tensor = last_output_, .access = Access::kRead, .words = count});
        }
        const std::string dims = shape_text(shape);
        const Id<Tensor> output = allocate(4 * count, Category::kTemporary, shape.output, dims);
        if (saves_output(shape)) forward.saved.push_back(save(output));
        if (shape.has_mask) {
            const std::string mask = fmt::format("{}_mask", shape.output);
            forward.saved.push_back(
                save(allocate(count, Category::kTemporary, mask, dims, DType::kBool)));
        }
        end_op();
        // A temporary is freed after the next op has read it.
        if (pending_.valid()) release(pending_);
        pending_ = saves_output(shape) ? Id<Storage>() : storage_of(output);
        last_output_ = output;
        forward_.push_back(std::move(forward));
    }

    void run_backward(const ForwardOp& forward) {
        const OpShape& shape = *forward.shape;
        const int64_t count = elements(shape);
        begin_op(fmt::format("{}_backward", shape.name), forward.module_path, forward.op,
                 shape.op_class, 2 * count);
        const Id<Tensor> gradient = allocate(4 * count, Category::kTemporary,
                                             fmt::format("d_{}", shape.output), shape_text(shape));
        for (int p = 0; p < shape.num_parameters; ++p) {
            const int64_t bytes = parameter_bytes(shape, p == 0);
            gradients_.push_back(storage_of(
                allocate(bytes, Category::kGradient, "grad", fmt::format("[{}]", bytes / 4))));
        }
        if (pending_.valid()) release(pending_);
        pending_ = storage_of(gradient);
        for (const Saved& saved : forward.saved) {
            trace_.saves.set<&Save::released_event>(saved.save, event_);
            release(saved.storage);
        }
        end_op();
    }

    void run_optimizer() {
        for (const Id<Storage> gradient : gradients_) {
            const int64_t bytes = trace_.storages.get<&Storage::size_bytes>(gradient);
            begin_op("aten::addcdiv_", optimizer_module_path_, {}, kElementWise, bytes / 4);
            release(storage_of(allocate(bytes, Category::kTemporary, "denominator",
                                        fmt::format("[{}]", bytes / 4))));
            end_op();
        }
        for (const Id<Storage> gradient : gradients_) release(gradient);
        gradients_.clear();
        if (pending_.valid()) release(pending_);
        pending_ = {};
        last_output_ = {};
    }

    SyntheticTraceOptions options_;
    Trace trace_;
    Id<Device> cpu_;
    Id<Thread> main_thread_, autograd_thread_;
    Id<ModulePath> optimizer_module_path_;
    std::vector<Id<ModulePath>> module_paths_;  // per layer and op
    std::vector<ForwardOp> forward_;
    std::vector<Id<Storage>> gradients_;
    Id<Storage> pending_;  // the temporary that the next op frees
    Id<Tensor> last_output_;
    Id<Op> op_;
    Id<Phase> phase_;
    Id<Step> step_;
    int64_t clock_ns_ = 0;
    int64_t event_ = 0;
    int64_t next_address_ = 0x7f0000000000;
    std::map<int64_t, std::vector<int64_t>> free_addresses_;
};

}  // namespace

Trace make_synthetic_trace(const SyntheticTraceOptions& options) {
    return Builder(options).build();
}

}  // namespace tests
