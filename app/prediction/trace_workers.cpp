#include "app/prediction/trace_workers.h"

#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/worker_process.h"
#include "profiler/trace/file/trace_bytes.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using TracePointer = std::shared_ptr<const Trace>;

/// What changes the requests of torch's CUDA code. The planner has allocator settings of its own.
constexpr const char* kSettings[] = {
    "PYTORCH_ALLOC_CONF",        "PYTORCH_CUDA_ALLOC_CONF",    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_TUNABLEOP_ENABLED", "CUBLAS_WORKSPACE_CONFIG",    "CUBLASLT_WORKSPACE_SIZE",
    "DISABLE_ADDMM_CUDA_LT",     "TORCH_BLAS_PREFER_CUBLASLT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "NVIDIA_TF32_OVERRIDE",      "CUDA_VISIBLE_DEVICES"};

/// A trace takes a second; for a model with a thousand layers it takes a minute.
constexpr std::chrono::minutes kTimeout{5};
constexpr int64_t kWarmupSteps = 1;

/// Whether the worker ended without an answer. What it refuses names a field; memory that ran out
/// is an answer too.
bool is_of_a_dead_worker(const models::Error& error) {
    return error.fields.empty() && !error.out_of_memory;
}

/// 0 for none.
int64_t whole_of(const std::optional<Figure>& figure) {
    return figure ? static_cast<int64_t>(figure->value) : 0;
}

tl::expected<Trace, ErrorFrame> trace_of(const WorkerOutcome& outcome) {
    if (!outcome) return tl::unexpected(outcome.error());
    auto trace = trace_from_bytes(outcome->payload);
    if (!trace) return tl::unexpected(ErrorFrame{.message = std::move(trace.error().message)});
    return std::move(*trace);
}

}  // namespace

VirtualCard virtual_card(const Gpu& gpu) {
    return {.name = gpu.name,
            .capability = std::max(gpu.compute_capability.value_or(models::kAmpere), kOldestTraced),
            .total_bytes = kEndlessBytes,
            .sm_count = static_cast<int64_t>(gpu.sm_count.value),
            .l2_bytes = static_cast<int64_t>(gpu.l2_bytes.value),
            .clock_khz = whole_of(gpu.clock_khz),
            .memory_clock_khz = whole_of(gpu.memory_clock_khz),
            .memory_bus_bits = whole_of(gpu.memory_bus_bits)};
}

models::Result<WorkerClient> start_worker_on(const std::vector<VirtualCard>& cards,
                                             std::string_view torch) {
    const auto program = find_worker_for(torch);
    if (!program) return tl::unexpected(program.error());
    if (cards.empty()) return WorkerClient::start(*program);
    auto environment = virtual_gpu_environment(virtual_gpu_folder(), cards);
    if (!environment) return tl::unexpected(environment.error());
    // A prediction is of the GPU and the setup that were asked for, not of the user's settings.
    for (const char* name : kSettings) environment->emplace_back(name);
    return WorkerClient::start(*program, *environment);
}

const Gpu& shared_gpu() { return **find_gpu(built_in_planner_data().gpus, "a100-40gb"); }

models::Result<WorkerClient> WorkerStarter::start(std::vector<VirtualCard> cards,
                                                  std::string torch) {
    Start job([cards = std::move(cards), torch = std::move(torch)] {
        return start_worker_on(cards, torch);
    });
    auto result = job.get_future();
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(job));
        if (!thread_.joinable()) {
            thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
        }
    }
    has_work_.notify_one();
    return result.get();
}

void WorkerStarter::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (has_work_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
        Start job = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        job();
        lock.lock();
    }
}

TraceWorkers::TraceWorkers(std::vector<const Gpu*> gpus, TraceDetail detail, std::string torch)
    : gpus_(std::move(gpus)), detail_(detail), torch_(std::move(torch)) {}

void TraceWorkers::cancel() {
    cancelled_ = true;
    for (Worker* worker = newest_; worker != nullptr; worker = worker->older) {
        worker->client.cancel();
    }
}

StepSource TraceWorkers::source() {
    return [this](const StepToTrace& step) { return trace(step); };
}

std::size_t TraceWorkers::started() const {
    const std::lock_guard lock(mutex_);
    return workers_.size();
}

std::string TraceWorkers::log() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const Worker& worker : workers_) text += worker.client.log();
    return text;
}

std::vector<VirtualCard> TraceWorkers::cards_of(std::size_t group) const {
    const std::size_t begin = group * kMostVirtualCards;
    const std::size_t end = std::min(gpus_.size(), begin + kMostVirtualCards);
    std::vector<VirtualCard> cards;
    for (std::size_t i = begin; i < end; ++i) cards.push_back(virtual_card(*gpus_[i]));
    return cards;
}

models::Result<TraceWorkers::Worker*> TraceWorkers::borrow(std::size_t group) {
    {
        const std::lock_guard lock(mutex_);
        const auto newest =
            std::find_if(idle_.rbegin(), idle_.rend(),
                         [group](const Worker* worker) { return worker->group == group; });
        if (newest != idle_.rend()) {
            Worker* const worker = *newest;
            idle_.erase(std::next(newest).base());
            return worker;
        }
    }
    auto client = starter_.start(cards_of(group), torch_);
    if (!client) return tl::unexpected(client.error());
    const std::lock_guard lock(mutex_);
    Worker& worker = workers_.emplace_back(Worker{std::move(*client), group, newest_});
    newest_ = &worker;
    // A `cancel` before the line above has missed this worker.
    if (cancelled_) worker.client.cancel();
    return &worker;
}

void TraceWorkers::give_back(Worker& worker) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(&worker);
}

std::size_t TraceWorkers::index_of(const std::string& gpu) const {
    if (gpu.empty()) return 0;
    const auto found = std::ranges::find(gpus_, gpu, &Gpu::id);
    if (found == gpus_.end()) throw std::invalid_argument("these workers do not have " + gpu);
    return static_cast<std::size_t>(found - gpus_.begin());
}

models::Result<TracePointer> TraceWorkers::trace(const StepToTrace& step) {
    ++traces_asked_;
    const std::size_t group = index_of(step.gpu) / kMostVirtualCards;
    for (;;) {
        if (cancelled_) return models::fail("The plan was cancelled.");
        const auto worker = borrow(group);
        if (!worker) return tl::unexpected(worker.error());
        const bool was_idle = (*worker)->client.has_begun();
        auto trace = trace_with(**worker, step);
        if (trace) return trace;
        // An idle worker may have been killed meanwhile. A new worker says what is wrong.
        if (was_idle && is_of_a_dead_worker(trace.error())) continue;
        return tl::unexpected(std::move(trace.error()));
    }
}

models::Result<TracePointer> TraceWorkers::trace_with(Worker& worker, const StepToTrace& step) {
    const std::size_t index = index_of(step.gpu);
    const bool is_capture = detail_ == TraceDetail::kForCapture;
    const WorkerOutcome outcome = worker.client.run(
        {.kind = RequestKind::kPredictStep,
         .workload = models::to_json(step.workload),
         .warmup_steps = is_capture ? kWarmupSteps : 0,
         .compute_capability = models::to_text(virtual_card(*gpus_[index]).capability),
         .gpu_index = static_cast<int64_t>(index % kMostVirtualCards),
         .records_kernels = is_capture},
        {.timeout = kTimeout});
    auto trace = trace_of(outcome);
    if (trace) {
        give_back(worker);
        return std::make_shared<const Trace>(std::move(*trace));
    }
    worker.client.end();  // most errors are of workers that cannot be used again
    if (trace.error().cancelled) cancelled_ = true;
    models::Error error{.message = trace.error().message,
                        .out_of_memory = trace.error().out_of_memory()};
    if (!trace.error().fields.empty()) error.fields = {"batch_size"};
    return tl::unexpected(std::move(error));
}

}  // namespace app
