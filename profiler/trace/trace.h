#pragma once

#include "profiler/trace/enumerations.h"
#include "profiler/trace/program_rows.h"
#include "profiler/trace/string_table.h"
#include "profiler/trace/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

/// The data model of Temposcope. A training step is a `Trace`, whether it was measured on the CPU,
/// measured on a GPU, predicted or imported.
///
/// Times are nanoseconds since the start of the capture, on one monotonic clock. `event` numbers
/// count all allocator actions of a device. They are the total order, because times can tie.
/// -1 stands for "none" or "not known" in every integer column.
namespace profiler {

// ---- rows -----------------------------------------------------------------------------------

/// The capture as a whole; a trace has exactly one row.
struct Run {
    Source source = Source::kMeasuredCpu;
    TimeBasis time_basis = TimeBasis::kMeasured;
    RunState state = RunState::kIncomplete;
    StringId workload;            // JSON of models::Workload: everything needed to run it again
    StringId model;               // "bert-large"
    StringId head;                // "layers", "mlm", "squad", "lm"
    StringId recipe;              // the name the user gave: "tempo", "gelu=in_place,masks=bit"
    StringId recipe_per_layer;    // JSON array, one canonical recipe text per layer
    StringId precision;           // "fp32"
    StringId device_name;         // processor or GPU, as the system names it
    StringId software;            // JSON object of versions
    StringId allocator_settings;  // as PYTORCH_ALLOC_CONF; empty on the CPU
    int64_t num_layers = 0;
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t seed = 0;
    int64_t num_threads = 0;
    int64_t memory_limit_bytes = -1;  // emulated limit; -1 = none
    int64_t rank = 0;
    int64_t world_size = 1;
    int64_t start_unix_ns = 0;  // wall clock at time 0 of this trace
    // How the program was started, so that it can be run again; empty when the writer is not told.
    StringId command;      // JSON array of arguments: ["python", "train.py"]
    StringId folder;       // the working folder
    StringId environment;  // JSON object of the variables that change memory; never a secret
    int64_t imbalanced_peak_bytes = -1;  // of a further step with uneven experts; -1: none

    static constexpr auto columns() {
        return std::tuple(
            Column{"source", &Run::source}, Column{"time_basis", &Run::time_basis},
            Column{"state", &Run::state}, Column{"workload", &Run::workload},
            Column{"model", &Run::model}, Column{"head", &Run::head},
            Column{"recipe", &Run::recipe}, Column{"recipe_per_layer", &Run::recipe_per_layer},
            Column{"precision", &Run::precision}, Column{"device_name", &Run::device_name},
            Column{"software", &Run::software},
            Column{"allocator_settings", &Run::allocator_settings},
            Column{"num_layers", &Run::num_layers}, Column{"batch_size", &Run::batch_size},
            Column{"seq_len", &Run::seq_len}, Column{"seed", &Run::seed},
            Column{"num_threads", &Run::num_threads},
            Column{"memory_limit_bytes", &Run::memory_limit_bytes}, Column{"rank", &Run::rank},
            Column{"world_size", &Run::world_size}, Column{"start_unix_ns", &Run::start_unix_ns},
            Column{"command", &Run::command, /*since=*/3},
            Column{"folder", &Run::folder, /*since=*/3},
            Column{"environment", &Run::environment, /*since=*/3},
            Column{"imbalanced_peak_bytes", &Run::imbalanced_peak_bytes, /*since=*/3});
    }
};

/// One thing that is missing from the trace or had to be assumed.
struct Diagnostic {
    StringId code;  // "unmatched_frees"
    Severity severity = Severity::kInfo;
    int64_t count = 0;
    StringId explanation;  // one sentence: what it means and what to do

    static constexpr auto columns() {
        return std::tuple(
            Column{"code", &Diagnostic::code}, Column{"severity", &Diagnostic::severity},
            Column{"count", &Diagnostic::count}, Column{"explanation", &Diagnostic::explanation});
    }
};
/// Code of a diagnostic: other programs used the processor, so times are not the workload's alone.
inline constexpr std::string_view kMachineBusy = "machine_busy";
/// Code of a diagnostic: no measurement of the GPU stands behind the times of a predicted step.
inline constexpr std::string_view kTimesNotCalibrated = "times_not_calibrated";
/// Code of a diagnostic: the file holds the allocator's actions only, no ops, steps or modules.
inline constexpr std::string_view kAllocationsOnly = "allocations_only";
/// Code of a diagnostic: the first `count` events rebuild what was there before the recording.
inline constexpr std::string_view kStartState = "start_state";

struct Frame {
    StringId function;
    StringId file;
    int64_t line = 0;
    StringId code;  // the text of the line when it was recorded; empty: not recorded

    static constexpr auto columns() {
        return std::tuple(Column{"function", &Frame::function}, Column{"file", &Frame::file},
                          Column{"line", &Frame::line}, Column{"code", &Frame::code, /*since=*/2});
    }
};

/// A call stack: its innermost frame, and the stack around it.
struct Stack {
    Id<Stack> parent;
    Id<Frame> frame;

    static constexpr auto columns() {
        return std::tuple(Column{"parent", &Stack::parent}, Column{"frame", &Stack::frame});
    }
};

struct Device {
    StringId name;  // "cpu", "cuda:0"
    int64_t total_bytes = -1;

    static constexpr auto columns() {
        return std::tuple(Column{"name", &Device::name},
                          Column{"total_bytes", &Device::total_bytes});
    }
};

struct Stream {
    Id<Device> device;
    int64_t handle = 0;  // of CUDA

    static constexpr auto columns() {
        return std::tuple(Column{"device", &Stream::device}, Column{"handle", &Stream::handle});
    }
};

struct Thread {
    StringId name;
    int64_t system_id = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"name", &Thread::name}, Column{"system_id", &Thread::system_id});
    }
};

/// A node of the module tree, a `scope` in files, by its full path as Hugging Face names modules:
/// `encoder.layer.3.attention.self.softmax`, `h.3.mlp`.
struct ModulePath {
    StringId path;
    Id<ModulePath> parent;
    int64_t layer = -1;  // index of the Transformer layer it lies in
    StringId type;       // class of the module: "Dropout"; empty: not recorded

    static constexpr auto columns() {
        return std::tuple(Column{"path", &ModulePath::path}, Column{"parent", &ModulePath::parent},
                          Column{"layer", &ModulePath::layer},
                          Column{"type", &ModulePath::type, /*since=*/3});
    }
};

/// One recorded training iteration.
struct Step {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t first_event = 0;  // allocator events [first_event, last_event) happened in it
    int64_t last_event = 0;
    double loss = 0;
    StepKind kind = StepKind::kWhole;

    static constexpr auto columns() {
        return std::tuple(Column{"start_ns", &Step::start_ns}, Column{"end_ns", &Step::end_ns},
                          Column{"first_event", &Step::first_event},
                          Column{"last_event", &Step::last_event}, Column{"loss", &Step::loss},
                          Column{"kind", &Step::kind, /*since=*/3});
    }
};

struct Phase {
    Id<Step> step;
    PhaseKind kind = PhaseKind::kForward;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t first_event = 0;  // allocator events [first_event, last_event) happened in it
    int64_t last_event = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"step", &Phase::step}, Column{"kind", &Phase::kind},
                          Column{"start_ns", &Phase::start_ns}, Column{"end_ns", &Phase::end_ns},
                          Column{"first_event", &Phase::first_event},
                          Column{"last_event", &Phase::last_event});
    }
};

/// One framework call.
struct Op {
    StringId name;  // "aten::addmm", "tempo::gelu"
    Id<ModulePath> module_path;
    Id<Phase> phase;
    Id<Thread> thread;
    Id<Op> parent;   // the call that made this call
    Id<Op> forward;  // for a backward op: the forward op whose gradient it computes
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t flop = 0;
    int64_t read_words = 0;  // elements, not bytes
    int64_t written_words = 0;
    OpClass op_class = OpClass::kOther;

    static constexpr auto columns() {
        return std::tuple(Column{"name", &Op::name}, Column{"scope", &Op::module_path},
                          Column{"phase", &Op::phase}, Column{"thread", &Op::thread},
                          Column{"parent", &Op::parent}, Column{"forward", &Op::forward},
                          Column{"start_ns", &Op::start_ns}, Column{"end_ns", &Op::end_ns},
                          Column{"flop", &Op::flop}, Column{"read_words", &Op::read_words},
                          Column{"written_words", &Op::written_words},
                          Column{"op_class", &Op::op_class});
    }
};

struct Allocation;

/// The memory behind one or more tensors.
struct Storage {
    Id<Allocation> allocation;
    int64_t size_bytes = 0;
    Category category = Category::kUnknown;

    static constexpr auto columns() {
        return std::tuple(Column{"allocation", &Storage::allocation},
                          Column{"size_bytes", &Storage::size_bytes},
                          Column{"role", &Storage::category});
    }
};

/// A view of a storage, as an op saw it.
struct Tensor {
    Id<Storage> storage;
    StringId name;     // "query", "attention_probs", "encoder.layer.0.output.dense.weight"
    StringId shape;    // "[8, 512, 1024]"
    StringId strides;  // "[524288, 1024, 1]", elements
    DType dtype = DType::kOther;
    Id<Op> producer;  // the op that returned it first

    static constexpr auto columns() {
        return std::tuple(Column{"storage", &Tensor::storage}, Column{"name", &Tensor::name},
                          Column{"shape", &Tensor::shape}, Column{"strides", &Tensor::strides},
                          Column{"dtype", &Tensor::dtype}, Column{"producer", &Tensor::producer});
    }
};

/// An edge of the data flow: this op read or wrote this tensor.
struct OpTensor {
    Id<Op> op;
    Id<Tensor> tensor;
    Access access = Access::kRead;
    int64_t words = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"op", &OpTensor::op}, Column{"tensor", &OpTensor::tensor},
                          Column{"access", &OpTensor::access}, Column{"words", &OpTensor::words});
    }
};

/// Autograd saves a storage for the backward of `op`, from `saved_event` to `released_event`.
struct Save {
    Id<Storage> storage;
    Id<Tensor> tensor;
    Id<Op> op;
    int64_t saved_event = -1;     // the save came after the events before this number
    int64_t released_event = -1;  // -1 = still saved at the end of the trace

    static constexpr auto columns() {
        return std::tuple(Column{"storage", &Save::storage}, Column{"tensor", &Save::tensor},
                          Column{"op", &Save::op}, Column{"saved_event", &Save::saved_event},
                          Column{"released_event", &Save::released_event});
    }
};

/// A change of the allocator's own state: segments, out of memory, the start snapshot.
struct AllocatorEvent {
    AllocatorAction action = AllocatorAction::kSnapshot;
    int64_t event = 0;
    int64_t time_ns = 0;
    Id<Device> device;
    Id<Stream> stream;
    int64_t pool = 0;  // 0 = default pool; private pools (graph capture) count from 1
    int64_t address = 0;
    int64_t size_bytes = 0;   // of the segment; for kOom, the bytes asked for
    int64_t free_bytes = -1;  // for kOom: free bytes of the device

    static constexpr auto columns() {
        return std::tuple(
            Column{"action", &AllocatorEvent::action}, Column{"event", &AllocatorEvent::event},
            Column{"time_ns", &AllocatorEvent::time_ns}, Column{"device", &AllocatorEvent::device},
            Column{"stream", &AllocatorEvent::stream}, Column{"pool", &AllocatorEvent::pool},
            Column{"address", &AllocatorEvent::address},
            Column{"size_bytes", &AllocatorEvent::size_bytes},
            Column{"free_bytes", &AllocatorEvent::free_bytes});
    }
};

/// One block from its allocation to its free. On the CPU requested = block bytes and both free
/// events coincide.
struct Allocation {
    Id<Device> device;
    Id<Stream> stream;
    int64_t pool = 0;
    int64_t address = 0;
    int64_t requested_bytes = 0;
    int64_t block_bytes = 0;  // after the allocator's rounding
    int64_t alloc_event = 0;
    int64_t free_requested_event = -1;  // -1 = still live
    int64_t free_completed_event = -1;  // later than requested when another stream used it
    int64_t alloc_ns = 0;
    int64_t free_requested_ns = -1;
    int64_t free_completed_ns = -1;
    Id<Op> op;          // the innermost op that ran when it was allocated
    Id<Op> freeing_op;  // the innermost op that ran when it was freed
    Id<Storage> storage;
    Id<AllocatorEvent> segment;  // the segment_alloc or segment_map it lies in
    Id<Stack> stack;

    static constexpr auto columns() {
        return std::tuple(
            Column{"device", &Allocation::device}, Column{"stream", &Allocation::stream},
            Column{"pool", &Allocation::pool}, Column{"address", &Allocation::address},
            Column{"requested_bytes", &Allocation::requested_bytes},
            Column{"block_bytes", &Allocation::block_bytes},
            Column{"alloc_event", &Allocation::alloc_event},
            Column{"free_requested_event", &Allocation::free_requested_event},
            Column{"free_completed_event", &Allocation::free_completed_event},
            Column{"alloc_ns", &Allocation::alloc_ns},
            Column{"free_requested_ns", &Allocation::free_requested_ns},
            Column{"free_completed_ns", &Allocation::free_completed_ns},
            Column{"op", &Allocation::op}, Column{"freeing_op", &Allocation::freeing_op},
            Column{"storage", &Allocation::storage}, Column{"segment", &Allocation::segment},
            Column{"stack", &Allocation::stack});
    }
};

struct Kernel {
    StringId name;
    Id<Stream> stream;
    Id<Op> op;  // the op that launched it
    int64_t correlation = -1;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t grid_x = 0, grid_y = 0, grid_z = 0;
    int64_t block_x = 0, block_y = 0, block_z = 0;
    int64_t registers_per_thread = 0;
    int64_t shared_memory_bytes = 0;  // static and dynamic

    static constexpr auto columns() {
        return std::tuple(Column{"name", &Kernel::name}, Column{"stream", &Kernel::stream},
                          Column{"op", &Kernel::op}, Column{"correlation", &Kernel::correlation},
                          Column{"start_ns", &Kernel::start_ns}, Column{"end_ns", &Kernel::end_ns},
                          Column{"grid_x", &Kernel::grid_x}, Column{"grid_y", &Kernel::grid_y},
                          Column{"grid_z", &Kernel::grid_z}, Column{"block_x", &Kernel::block_x},
                          Column{"block_y", &Kernel::block_y}, Column{"block_z", &Kernel::block_z},
                          Column{"registers_per_thread", &Kernel::registers_per_thread},
                          Column{"shared_memory_bytes", &Kernel::shared_memory_bytes});
    }
};

/// A copy or a memset on the device.
struct Memcpy {
    StringId kind;  // "host_to_device", "device_to_device", "memset"
    Id<Stream> stream;
    Id<Op> op;
    int64_t correlation = -1;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t size_bytes = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"kind", &Memcpy::kind}, Column{"stream", &Memcpy::stream},
                          Column{"op", &Memcpy::op}, Column{"correlation", &Memcpy::correlation},
                          Column{"start_ns", &Memcpy::start_ns}, Column{"end_ns", &Memcpy::end_ns},
                          Column{"size_bytes", &Memcpy::size_bytes});
    }
};

/// A kernel or copy that waits for a kernel or copy of another stream: an event was recorded after
/// the awaited work, and the stream waits for the event before the waiting work. A wait that older
/// waits imply has no row.
struct StreamWait {
    Id<Kernel> kernel;  // that waits; none: the copy does
    Id<Memcpy> memcpy;
    Id<Kernel> awaited_kernel;  // ends before the other begins; none: the copy does
    Id<Memcpy> awaited_memcpy;

    static constexpr int kSince = 2;
    static constexpr auto columns() {
        return std::tuple(Column{"kernel", &StreamWait::kernel},
                          Column{"memcpy", &StreamWait::memcpy},
                          Column{"awaited_kernel", &StreamWait::awaited_kernel},
                          Column{"awaited_memcpy", &StreamWait::awaited_memcpy});
    }
};

/// A group of ranks that communicate: a process group of torch.distributed.
struct Communicator {
    StringId name;         // torch's: "0"
    StringId description;  // "default_pg", "mesh_shard"
    int64_t num_ranks = -1;
    StringId ranks;  // "[0, 8, 16]", numbers of the whole run; none: not known

    static constexpr int kSince = 2;
    static constexpr auto columns() {
        return std::tuple(
            Column{"name", &Communicator::name}, Column{"description", &Communicator::description},
            Column{"num_ranks", &Communicator::num_ranks}, Column{"ranks", &Communicator::ranks});
    }
};

/// One communication of this rank with others. An operation in place has the same bytes in and out.
struct Collective {
    Id<Op> op;          // the call: "c10d::allreduce_"
    Id<Kernel> kernel;  // NCCL's; none on the CPU, and if another call's kernel does this work too
    Id<Communicator> communicator;
    CollectiveKind kind = CollectiveKind::kOther;
    DType dtype = DType::kOther;
    int64_t in_bytes = 0;   // of the tensors that this rank gives
    int64_t out_bytes = 0;  // of the tensors that it gets
    int64_t peer = -1;      // of send and recv: the other rank, counted in the communicator
    int64_t start_ns = 0;   // of the kernel; without one, of the call
    int64_t end_ns = -1;    // of the kernel; without one, when the backend's threads were done

    static constexpr int kSince = 2;
    static constexpr auto columns() {
        return std::tuple(
            Column{"op", &Collective::op}, Column{"kernel", &Collective::kernel},
            Column{"communicator", &Collective::communicator}, Column{"kind", &Collective::kind},
            Column{"dtype", &Collective::dtype}, Column{"in_bytes", &Collective::in_bytes},
            Column{"out_bytes", &Collective::out_bytes}, Column{"peer", &Collective::peer},
            Column{"start_ns", &Collective::start_ns}, Column{"end_ns", &Collective::end_ns});
    }
};

/// A CUDA runtime or driver call on the host.
struct Api {
    StringId name;
    Id<Thread> thread;
    Id<Op> op;
    int64_t correlation = -1;
    int64_t start_ns = 0;
    int64_t end_ns = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"name", &Api::name}, Column{"thread", &Api::thread},
                          Column{"op", &Api::op}, Column{"correlation", &Api::correlation},
                          Column{"start_ns", &Api::start_ns}, Column{"end_ns", &Api::end_ns});
    }
};

/// A sampled value that cannot be derived from the events: free device memory, a clock rate.
struct Counter {
    StringId name;  // unit last: "device_free_bytes", "sm_clock_hz"
    Id<Device> device;
    int64_t time_ns = 0;
    double value = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"name", &Counter::name}, Column{"device", &Counter::device},
                          Column{"time_ns", &Counter::time_ns}, Column{"value", &Counter::value});
    }
};

/// A range or a mark (start = end) by the user or by the tool.
struct Annotation {
    StringId text;
    int64_t start_ns = 0;
    int64_t end_ns = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"text", &Annotation::text},
                          Column{"start_ns", &Annotation::start_ns},
                          Column{"end_ns", &Annotation::end_ns});
    }
};

/// One batch size of a sweep.
struct SweepPoint {
    int64_t batch_size = 0;
    SweepOutcome outcome = SweepOutcome::kOk;
    int64_t peak_allocated_bytes = 0;
    int64_t peak_reserved_bytes = 0;
    int64_t requested_bytes = -1;  // at out of memory: the allocation that failed
    int64_t free_bytes = -1;       // at out of memory: what was left

    static constexpr auto columns() {
        return std::tuple(Column{"batch_size", &SweepPoint::batch_size},
                          Column{"outcome", &SweepPoint::outcome},
                          Column{"peak_allocated_bytes", &SweepPoint::peak_allocated_bytes},
                          Column{"peak_reserved_bytes", &SweepPoint::peak_reserved_bytes},
                          Column{"requested_bytes", &SweepPoint::requested_bytes},
                          Column{"free_bytes", &SweepPoint::free_bytes});
    }
};

struct SweepSample {
    Id<SweepPoint> point;
    int64_t step_time_ns = 0;

    static constexpr auto columns() {
        return std::tuple(Column{"point", &SweepSample::point},
                          Column{"step_time_ns", &SweepSample::step_time_ns});
    }
};

// ---- the trace ------------------------------------------------------------------------------

struct Trace {
    // Defined in trace.cpp, because every file that holds a trace would otherwise compile these
    // thousands of members of vectors and tuples again.
    Trace();
    Trace(const Trace&);
    Trace(Trace&&) noexcept;
    Trace& operator=(const Trace&);
    Trace& operator=(Trace&&) noexcept;
    ~Trace();

    StringTable strings;
    Table<Run> runs;  // exactly one row
    Table<Diagnostic> diagnostics;
    Table<Frame> frames;
    Table<Stack> stacks;
    Table<Device> devices;
    Table<Stream> streams;
    Table<Thread> threads;
    Table<ModulePath> module_paths;
    Table<Step> steps;
    Table<Phase> phases;
    Table<Op> ops;
    Table<Storage> storages;
    Table<Tensor> tensors;
    Table<OpTensor> op_tensors;
    Table<Save> saves;
    Table<Allocation> allocations;
    Table<AllocatorEvent> allocator_events;
    Table<Failure> failures;
    Table<Keeper> keepers;
    Table<ValueRead> value_reads;
    Table<SlowAttention> slow_attentions;
    Table<Kernel> kernels;
    Table<Memcpy> memcpys;
    Table<StreamWait> stream_waits;
    Table<Api> apis;
    Table<Communicator> communicators;
    Table<Collective> collectives;
    Table<Counter> counters;
    Table<Annotation> annotations;
    Table<SweepPoint> sweep_points;
    Table<SweepSample> sweep_samples;

    Run run() const { return runs.empty() ? Run{} : runs[Id<Run>(0)]; }
    std::string_view text(StringId id) const { return strings[id]; }

    /// Calls `visit(name, table)` for every table but the strings, in file order. `name` is the
    /// table's name in the file, singular.
    template <typename Self, typename Visit>
    static void for_each_table(Self& self, Visit&& visit) {
        visit("run", self.runs);
        visit("health", self.diagnostics);
        visit("frame", self.frames);
        visit("stack", self.stacks);
        visit("device", self.devices);
        visit("stream", self.streams);
        visit("thread", self.threads);
        visit("scope", self.module_paths);
        visit("step", self.steps);
        visit("phase", self.phases);
        visit("op", self.ops);
        visit("storage", self.storages);
        visit("tensor", self.tensors);
        visit("op_tensor", self.op_tensors);
        visit("save", self.saves);
        visit("allocation", self.allocations);
        visit("allocator_event", self.allocator_events);
        visit("failure", self.failures);
        visit("keeper", self.keepers);
        visit("value_read", self.value_reads);
        visit("slow_attention", self.slow_attentions);
        visit("kernel", self.kernels);
        visit("memcpy", self.memcpys);
        visit("stream_wait", self.stream_waits);
        visit("api", self.apis);
        visit("communicator", self.communicators);
        visit("collective", self.collectives);
        visit("counter", self.counters);
        visit("annotation", self.annotations);
        visit("sweep_point", self.sweep_points);
        visit("sweep_sample", self.sweep_samples);
    }
};

struct NewDiagnostic {
    std::string_view code;
    Severity severity = Severity::kInfo;
    int64_t count = 1;
    std::string_view explanation;
};
/// Codes of diagnostics: a measured step ran out of memory, and the trace shows it up to there; a
/// predicted step needs more memory than its GPU has, and the trace shows it as on a larger one.
inline constexpr std::string_view kRanOutOfMemory = "out_of_memory";
inline constexpr std::string_view kStepDoesNotFit = "does_not_fit";

/// Appends a row to `diagnostics`, or nothing when the count is 0.
void add_diagnostic(Trace& trace, const NewDiagnostic& diagnostic);
/// The same, in place of the row with this code if there is one.
void set_diagnostic(Trace& trace, const NewDiagnostic& diagnostic);

/// The failure that ended the program: the last one that neither the program caught nor torch
/// absorbed, on a device or, for an invalid id, on any. None when there is none.
Id<Failure> fatal_failure(const Trace& trace, Id<Device> device = {});

/// "cpu", or "cpu of rank 1" in a trace of joined ranks.
bool is_host(const Trace& trace, Id<Device> device);
/// The device whose memory is analysed: the first one that is not the host, else the first. None
/// when the trace names no devices; then all allocations belong to one device.
Id<Device> profiled_device(const Trace& trace);

/// The category of a block's storage; unknown without a storage.
Category category_of_block(const Trace& trace, Id<Allocation> block);

}  // namespace profiler
