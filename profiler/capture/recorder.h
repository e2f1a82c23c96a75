#pragma once

#include "models/observer/observer.h"
#include "models/training/training.h"
#include "profiler/capture/list_texts.h"
#include "profiler/capture/op_counts.h"
#include "profiler/capture/torch_adapter/allocation_source.h"
#include "profiler/capture/torch_adapter/torch_hooks.h"
#include "profiler/trace/trace.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Turns what happens in a training step into rows of a trace.
///
///   allocator ──► allocation, storage          (every block, exact)
///   dispatcher ─► op, tensor, op_tensor        (RecordFunction, with inputs and outputs)
///   autograd ───► save                         (saved-tensor hooks)
///   model code ─► scope, tensor names, notes   (models::Observer; `scope` holds module paths)
///   training ───► step, phase                  (models::StepListener)
///
/// Allocations, frees and saves belong to the innermost op of the thread. A backward op is linked
/// to its forward op by autograd's sequence number, and takes over its module path.
namespace profiler {

PhaseKind phase_kind(models::TrainingPhase phase);

/// Is told about ops and modules on the thread that runs them; ops nest, and modules nest.
class RunObserver {
public:
    virtual ~RunObserver() = default;
    virtual void on_op_begin(Id<Op> op) noexcept = 0;
    virtual void on_op_end() noexcept = 0;
    /// In forward from model code, in backward from each node with the module of its forward op.
    virtual void on_module_begin(std::string_view path) noexcept = 0;
    virtual void on_module_end() noexcept = 0;
};

class CallStacks;
struct CollectiveCall;

/// Why flash attention cannot take a call with these arguments; empty: it can.
using FlashRefusal = std::string (*)(c10::ArrayRef<const c10::IValue> arguments);

/// What a recorder records, and how.
struct RecorderOptions {
    AllocationSource* allocations = nullptr;      // null: the CPU's allocator
    Id<Device> device;                            // of the allocations; none: a new row
    std::string_view device_name = "cpu";         // of the new row
    TimeBasis time_basis = TimeBasis::kMeasured;  // kEventOrder: times are event numbers
    OpSet ops = OpSet::kCpu;                      // the device whose ops are counted
    RunObserver* observer = nullptr;              // may be null
    CallStacks* call_stacks = nullptr;            // null: none are recorded
    FlashRefusal flash_refusal = nullptr;         // null: attention is not asked about
};

class Recorder final : public models::Observer,
                       public models::StepListener,
                       public AllocationListener,
                       public TorchListener {
public:
    explicit Recorder(Trace& trace, const RecorderOptions& options = {});
    ~Recorder() override;

    /// Begins recording. The blocks that are live already become the first allocations, in order.
    void start() {
        start_allocations();
        start_ops();
    }
    void stop();

    /// The two parts of start(). Recording allocations alone costs little, and earlier steps shape
    /// the memory that the recorded steps find. Ops may pause and go on; what autograd releases
    /// meanwhile counts as saved until the end.
    void start_allocations();
    void start_ops();
    void stop_ops();

    /// A moment at which a step may turn out to have begun, or to have ended.
    struct StepStart {
        int64_t time_ns = 0;
        int64_t event = 0;
        std::size_t num_phases = 0;  // that had begun
    };
    StepStart next_step_start();

    void begin_step() { begin_step(next_step_start()); }
    void begin_step(const StepStart& start);
    /// Until then the step is a broken one, so that a crash leaves it as what it is. With `end` it
    /// ended before: later phases are of the next step, which begins there.
    void end_step(double loss, StepKind kind = StepKind::kWhole, const StepStart* end = nullptr);
    /// Makes a step of each inference that is in no step; the inference becomes its forward.
    /// Returns the number of these steps. Under lock_rows().
    int64_t make_steps_of_inferences();
    /// Gives the step and the phase that run the end that they have so far, for a file that is
    /// written in the middle of them. Under lock_rows().
    void end_so_far();
    /// Leaves a pause between two steps out of the recorder's clock.
    void skip(std::chrono::nanoseconds pause) { start_ += pause; }

    /// Allocator events so far. Under lock_rows().
    int64_t num_events() const { return next_event_; }

    /// Adds `paths` to the layers, in this order. From then on a number at the end of a path makes
    /// no layer.
    void add_layers(const std::vector<std::string>& paths);
    /// A module that runs no code of its own, as in compiled code.
    void add_module_path(const std::string& path);
    /// The class of each module, by its path: {"encoder.layer.0.dropout", "Dropout"}.
    void add_module_types(const std::unordered_map<std::string, std::string>& types);
    /// Gives the storage of `tensor` a category and a name ("encoder.layer.0.output.dense.weight").
    void describe(const at::Tensor& tensor, std::string_view name, Category category);
    /// The category of the storage of `tensor` so far; none: no recorded allocation.
    std::optional<Category> category_of(const at::Tensor& tensor);
    void add_note(std::string_view code, Severity severity, std::string_view explanation);

    /// A failure that happens now on this thread, of no request. Under lock_rows().
    Failure failure_here();

    /// Time since the recorder was made, without pauses. With TimeBasis::kEventOrder, the number of
    /// allocator events so far.
    int64_t now_ns() const;
    /// The time that now_ns() counts from.
    std::chrono::steady_clock::time_point start_time() const { return start_; }

    // models::Observer
    void on_tensor_named(const at::Tensor& tensor, std::string_view name) override;
    void on_note(std::string_view code, std::string_view sentence) override;
    void on_module_begin(std::string_view path) noexcept override;
    void on_module_end() noexcept override;
    // models::StepListener
    void on_phase_begin(models::TrainingPhase phase) override;
    void on_phase_end(models::TrainingPhase phase) noexcept override;
    // AllocationListener
    void on_alloc(BlockHeader& block, int64_t address) override;
    void on_free(const BlockHeader& block) override;
    void on_out_of_memory(const Refusal& refusal) override;
    WantsStack wants_stack() const override;
    LockedMoment next_action() override;
    void add_stack(GatheredStack stack, const AllocatorMoment& moment) override;
    void add_failure(const Refusal& refusal, const AllocatorMoment& moment) override;
    std::unique_lock<std::mutex> lock_rows() override { return std::unique_lock(mutex_); }

    // TorchListener
    uint64_t generation() const override { return generation_; }
    std::unique_ptr<RunningOp> begin_op(const at::RecordFunction& function) override;
    void end_op(const at::RecordFunction& function, RunningOp& op) override;
    void end_collective_call(Id<Collective> collective, bool goes_on) override;
    void end_collective(Id<Collective> collective) override;
    Id<Save> save(const at::Tensor& tensor) override;
    void release(Id<Save> save) override;

private:
    struct RecordedOp final : RunningOp {
        /// Also where nobody hears of the end of the op: an exception, or a pause of the hooks.
        ~RecordedOp() override;
        Id<Op> id;
        Id<ModulePath> node_module_path;  // of a backward node whose forward op is known
        std::optional<OpInputs> inputs;   // of ops that are counted
    };

    /// What a name of ops says. A step has few names, and thousands of ops.
    struct OpKind {
        StringId name;
        std::optional<OpClass> op_class;  // none: the ops are not counted
        StringId output_name;             // of what they make, unless it is named: "addmm_output"
    };

    struct NameHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view name) const {
            return std::hash<std::string_view>()(name);
        }
    };

    /// What is known about a storage besides its row. Two views of it that look the same are one
    /// row of the tensor table.
    struct StorageDetail {
        StringId name;       // none: not named yet
        StringId copy_name;  // instead, of what a copy made: "query.weight cast"
        Id<Tensor> newest;
    };

    std::string scope_path(Id<ModulePath> module_path);
    void ask_flash(const at::RecordFunction& function, Id<Op> op);
    void record_begin(const at::RecordFunction& function, const CollectiveCall* collective,
                      RecordedOp& op);
    void record_end(const at::RecordFunction& function, const RecordedOp& op);
    const OpKind& kind_of(const at::RecordFunction& function);
    StringId output_name_of(Id<Op> op);
    StorageDetail& detail_of(Id<Storage> storage);
    int64_t layer_named(const std::string& path) const;
    Id<ModulePath> module_path_of(const std::string& path);
    /// A module has parameters before it runs, and if it never does.
    void add_module_of(std::string_view parameter);
    Id<ModulePath> running_module_path(Id<Op> op);
    Id<Op> op_of_save();
    Id<Storage> storage_of(const at::Tensor& tensor) const;
    Id<Op> maker_of(Id<Storage> storage) const;
    bool is_made_by_copy(Id<Storage> storage) const;
    Id<Tensor> tensor_of(const at::Tensor& tensor);
    void name_storage(Id<Storage> storage, StringId name);
    /// Names what a cast or clone makes after its source, once copy_ fills it. Nothing else that
    /// copy_ overwrites.
    void name_copy(const at::Tensor& copy, const at::Tensor& source);
    void cut_step(const StepStart& end);
    void link_to_forward(Op& op, const at::RecordFunction& function, Id<Op> id);
    Id<Collective> add_collective(const CollectiveCall& call, Id<Op> op);
    Id<Communicator> communicator_of(const CollectiveCall& call);
    /// DDP adds up gradients in flat tensors that it keeps. Only the call shows them: a tensor
    /// without a name that is older than this backward, and that all ranks add up.
    void name_bucket(const at::RecordFunction& all_reduce);
    void add_edges(Id<Op> op, std::span<const at::Tensor> tensors, Access access);
    Id<Thread> current_thread();

    Trace& trace_;
    AllocationSource& allocations_;
    const TimeBasis time_basis_;
    const OpSet ops_;
    RunObserver* const observer_;
    const FlashRefusal flash_refusal_;
    CallStacks* const call_stacks_;
    const uint64_t generation_;
    std::mutex mutex_;
    std::chrono::steady_clock::time_point start_;
    bool recording_ = false;
    int64_t next_event_ = 0;
    Id<Device> device_;
    Id<Step> step_;
    Id<Phase> phase_;
    std::unordered_map<std::string, Id<ModulePath>> module_paths_;
    std::unordered_map<std::string, StringId> module_types_;  // by path
    std::string newest_path_;                                 // of an op
    Id<ModulePath> newest_module_path_;
    std::optional<std::unordered_map<std::string, int64_t>> layers_;  // by path; none: by number
    std::unordered_map<std::string, OpKind, NameHash, std::equal_to<>> op_kinds_;  // by name
    static constexpr std::size_t kNumRecentKinds = 256;
    std::array<const OpKind*, kNumRecentKinds> recent_kinds_{};
    std::unordered_map<int64_t, Id<Op>> forward_ops_;  // thread, sequence number -> op
    std::vector<Id<Collective>> running_collectives_;
    int64_t num_buckets_ = 0;  // of DDP that were named in this step
    ListTexts list_texts_;
    // In few large pieces: small pieces would lie between the program's tensors. The memory of
    // freed tensors could then not serve large tensors again.
    std::vector<StorageDetail> storage_details_;  // by storage
    std::vector<Id<Tensor>> older_tensors_;       // by tensor: the one before of its storage
};

}  // namespace profiler
