#include "profiler/capture/cuda/gpu_recorder.h"

#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/trace/units.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvml.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

namespace profiler {
namespace {

/// The CUDA runtime creates the context when it is first needed.
void make_context(int device) {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    C10_CUDA_CHECK(cudaSetDevice(device));
    C10_CUDA_CHECK(cudaFree(nullptr));
}

/// Null when nobody collects NVTX ranges.
nvtxDomainHandle_t nvtx_domain() {
    static const nvtxDomainHandle_t handle = nvtxDomainCreateA("temposcope");
    return handle;
}

}  // namespace

// ---- DeviceMonitor ---------------------------------------------------------------------------

struct DeviceMonitor::Functions {
    decltype(&nvmlInit_v2) init = nullptr;
    decltype(&nvmlShutdown) shutdown = nullptr;
    decltype(&nvmlDeviceGetHandleByPciBusId_v2) find_device = nullptr;
    decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
    decltype(&nvmlDeviceGetComputeRunningProcesses_v3) processes = nullptr;
    decltype(&nvmlDeviceGetClockInfo) clock = nullptr;

    bool find_all(void* library) {
        const auto find = [&]<typename Function>(const char* name, Function& function) {
            function = reinterpret_cast<Function>(dlsym(library, name));
            return function != nullptr;
        };
        return find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
               find("nvmlDeviceGetHandleByPciBusId_v2", find_device) &&
               find("nvmlDeviceGetMemoryInfo", memory) &&
               find("nvmlDeviceGetComputeRunningProcesses_v3", processes) &&
               find("nvmlDeviceGetClockInfo", clock);
    }
};

DeviceMonitor::DeviceMonitor(int device) {
    std::array<char, 32> bus{};
    if (cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) != cudaSuccess) {
        (void)cudaGetLastError();
        return;
    }
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    auto functions = std::make_unique<Functions>();
    if (!functions->find_all(library_) || functions->init() != NVML_SUCCESS) return;
    functions_ = std::move(functions);
    nvmlDevice_t found = nullptr;
    if (functions_->find_device(bus.data(), &found) == NVML_SUCCESS) device_ = found;
}

DeviceMonitor::~DeviceMonitor() {
    if (functions_ != nullptr) functions_->shutdown();
    if (library_ != nullptr) dlclose(library_);
}

int64_t DeviceMonitor::nvml_used_bytes() const {
    if (!has_nvml()) return -1;
    nvmlMemory_t memory{};
    const auto device = static_cast<nvmlDevice_t>(device_);
    if (functions_->memory(device, &memory) != NVML_SUCCESS) return -1;
    return static_cast<int64_t>(memory.used);
}

int64_t DeviceMonitor::process_bytes() const {
    if (!has_nvml()) return -1;
    constexpr unsigned int kMostProcesses = 256;
    std::vector<nvmlProcessInfo_t> processes(kMostProcesses);
    unsigned int count = kMostProcesses;
    const auto device = static_cast<nvmlDevice_t>(device_);
    if (functions_->processes(device, &count, processes.data()) != NVML_SUCCESS) return -1;
    constexpr auto kNotAvailable = static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE);
    const auto self = static_cast<unsigned int>(::getpid());
    for (unsigned int i = 0; i < count; ++i) {
        const unsigned long long bytes = processes[i].usedGpuMemory;
        if (processes[i].pid != self || bytes == kNotAvailable) continue;
        return static_cast<int64_t>(bytes);
    }
    return -1;  // in a container the driver knows us by another number
}

int64_t DeviceMonitor::sm_clock_hz() const {
    if (!has_nvml()) return -1;
    unsigned int megahertz = 0;
    const auto device = static_cast<nvmlDevice_t>(device_);
    if (functions_->clock(device, NVML_CLOCK_SM, &megahertz) != NVML_SUCCESS) return -1;
    return int64_t{megahertz} * 1'000'000;
}

DeviceMonitor::MemoryInfo DeviceMonitor::cuda_memory() {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)};
}

// ---- GpuRecorder -----------------------------------------------------------------------------

GpuRecorder::GpuRecorder(Trace& trace, c10::DeviceIndex device)
    : trace_(trace),
      device_(device),
      monitor_(device),
      streams_(trace, trace.devices.append(
                          {.name = trace.strings.intern(fmt::format("cuda:{}", device))})),
      outside_(monitor_.nvml_used_bytes()) {
    open_cupti_session();
    make_context(device);
    trace_.devices.set<&Device::total_bytes>(streams_.device(),
                                             DeviceMonitor::cuda_memory().total_bytes);
    read_device(ReadingCause::kContext);
    if (!cupti_) return;
    if (auto ok = cupti_->record_memory(); !ok) {
        faults_.cupti_problem = ok.error().message;
        cupti_.reset();
        return;
    }
    read_device(ReadingCause::kCupti);
}

void GpuRecorder::open_cupti_session() {
    auto session = CuptiSession::open();
    if (session) {
        cupti_ = std::move(*session);
    } else {
        faults_.cupti_problem = session.error().message;
    }
}

std::string GpuRecorder::cupti_text() const {
    return cupti_ ? fmt::format("{}", cupti_->version()) : "not used";
}

std::vector<std::string> GpuRecorder::cupti_refusals() const {
    return cupti_ ? cupti_->refusals() : std::vector<std::string>();
}

nlohmann::json GpuRecorder::modules() const {
    nlohmann::json modules = nlohmann::json::array();
    if (!cupti_) return modules;
    const int64_t start_ns =
        recorder_ ? std::chrono::nanoseconds(recorder_->start_time().time_since_epoch()).count()
                  : 0;
    for (const LoadedModule& module : cupti_->modules()) {
        const Id<Op> op = op_of_external(module.external_id, trace_);
        modules.push_back({{"time_ns", module.time_ns - start_ns},
                           {"image_bytes", module.image_bytes},
                           {"op", op.valid() ? trace_.text(trace_.ops.get<&Op::name>(op)) : ""}});
    }
    return modules;
}

void GpuRecorder::drop_work() {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    if (!cupti_) return;
    const ActivityRecords records = cupti_->flush();
    driver_allocations_.add(records.memory);
}

void GpuRecorder::start(Recorder& recorder) {
    read_device(ReadingCause::kRun);  // what the model and the warm-up loaded
    recorder_ = &recorder;
    if (!cupti_) return;
    if (auto ok = cupti_->record_work(); !ok) {
        faults_.cupti_problem = ok.error().message;
        return;
    }
    // A real card's times say it; those of a virtual one are modelled from it.
    if (on_virtual_gpu()) cupti_->record_order();
    if (join_) return;
    const std::chrono::nanoseconds start = recorder.start_time().time_since_epoch();
    join_.emplace(
        trace_, streams_,
        JoinOptions{
            .clock_offset_ns = cupti_->steady_clock_offset_ns() - start.count(),
            .stream_handle = [this](uint32_t, uint32_t stream) { return handle_of_stream(stream); },
            .api_name = [this](ApiDomain domain,
                               uint32_t function) { return cupti_->api_name(domain, function); }});
    read_device(ReadingCause::kCupti);
}

/// Learns CUPTI's numbers of new streams, before records of their work are joined.
void GpuRecorder::number_streams() {
    for (const NumberedStream& made : cupti_->new_streams()) {
        stream_handles_[made.number] = made.handle;
    }
    // Also the allocator's streams: the default stream, and those from before CUPTI's callbacks.
    const auto known = trace_.streams.column<&Stream::handle>();
    for (; numbered_streams_ < known.size(); ++numbered_streams_) {
        const int64_t handle = known[numbered_streams_];
        if (handle < 0) continue;
        if (const auto number = cupti_->number_of_stream(handle)) stream_handles_[*number] = handle;
    }
}

/// Minus the number for a stream whose creation was not seen, since its handle is not known.
int64_t GpuRecorder::handle_of_stream(uint32_t number) {
    const auto found = stream_handles_.find(number);
    return found != stream_handles_.end() ? found->second : -static_cast<int64_t>(number);
}

void GpuRecorder::add_reading() {
    add_clock();  // while the device works: an idle one lowers its clock
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    read_device(ReadingCause::kRun);
}

void GpuRecorder::add_clock() {
    const int64_t clock_hz = monitor_.sm_clock_hz();
    if (clock_hz < 0) return;
    trace_.counters.append({.name = trace_.strings.intern("sm_clock_hz"),
                            .device = streams_.device(),
                            .time_ns = recorder_ ? recorder_->now_ns() : 0,
                            .value = static_cast<double>(clock_hz)});
}

void GpuRecorder::stop() {
    if (cupti_) add_records(cupti_->finish());
}

void GpuRecorder::add_records(ActivityRecords records) {
    faults_.dropped_records += records.dropped_records;
    faults_.unknown_records += records.unknown_records;
    faults_.broken_buffers += records.broken_buffers;
    driver_allocations_.add(records.memory);
    for (const KernelRecord& kernel : records.kernels) {
        local_memory_bytes_ = std::max(local_memory_bytes_, kernel.local_memory_bytes);
    }
    if (!join_) return;
    number_streams();
    join_->add(std::move(records));
}

void GpuRecorder::read_device(ReadingCause cause) {
    if (cupti_) add_records(cupti_->flush());
    const auto memory = DeviceMonitor::cuda_memory();
    const int64_t nvml_used_bytes = monitor_.nvml_used_bytes();
    const auto elsewhere = driver_allocations_.outside(CudaAllocations::segments(device_));
    DeviceReading reading{.cause = cause,
                          .time_ns = recorder_ ? recorder_->now_ns() : 0,
                          .used_bytes = nvml_used_bytes >= 0
                                            ? nvml_used_bytes
                                            : memory.total_bytes - memory.free_bytes,
                          .free_bytes = memory.free_bytes,
                          .process_bytes = monitor_.process_bytes(),
                          .reserved_bytes = CudaAllocations::memory(device_).reserved_bytes,
                          .library_bytes = elsewhere.library_bytes,
                          .nccl_bytes = elsewhere.nccl_bytes + virtual_nccl_bytes(device_),
                          .module_image_bytes = cupti_ ? cupti_->module_image_bytes() : 0,
                          .local_memory_bytes = local_memory_bytes_};
    // In a container another process may have our process id.
    if (reading.process_bytes < reading.reserved_bytes) reading.process_bytes = -1;
    outside_.add(reading);
    append_memory_counters(trace_, streams_.device(), reading, outside_.parts());
}

GpuFaults GpuRecorder::faults() const {
    GpuFaults faults = faults_;
    if (join_) faults.join = join_->counts();
    if (cupti_) faults.most_host_bytes = cupti_->most_host_bytes();
    faults.has_nvml = monitor_.has_nvml();
    return faults;
}

// ---- RunObserver -----------------------------------------------------------------------------

void GpuRecorder::on_op_begin(Id<Op> op) noexcept {
    if (cupti_) cupti_->push_op(external_id_of(op));
}

void GpuRecorder::on_op_end() noexcept {
    if (cupti_) cupti_->pop_op();
}

/// The modules of the model as NVTX ranges, for a program that collects them (Nsight Systems): it
/// then shows the names that this program shows. Without one a range costs a load and a branch.
void GpuRecorder::on_module_begin(std::string_view path) noexcept {
    const nvtxDomainHandle_t domain = nvtx_domain();
    if (domain == nullptr) return;
    std::array<char, 256> text{};  // a longer path is cut
    std::memcpy(text.data(), path.data(), std::min(path.size(), text.size() - 1));
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.data();
    nvtxDomainRangePushEx(domain, &attributes);
}

void GpuRecorder::on_module_end() noexcept {
    const nvtxDomainHandle_t domain = nvtx_domain();
    if (domain != nullptr) nvtxDomainRangePop(domain);
}

void add_gpu_notes(const GpuFaults& faults, const AllocatorRowCounts& allocator,
                   int64_t differing_totals, Trace& trace) {
    const auto add = [&](std::string_view code, Severity severity, int64_t count,
                         const std::string& sentence) {
        add_diagnostic(
            trace, {.code = code, .severity = severity, .count = count, .explanation = sentence});
    };
    add("kernels_missing", Severity::kWarning, faults.cupti_problem.empty() ? 0 : 1,
        faults.cupti_problem);
    add("cupti_records_dropped", Severity::kError, faults.dropped_records,
        "CUPTI had no free buffer and dropped records: kernels or calls are missing; record "
        "fewer layers or a smaller batch.");
    add("cupti_buffers_broken", Severity::kError, faults.broken_buffers,
        "CUPTI's buffers ended in the middle of a record: kernels or calls may be missing.");
    add("cupti_records_unknown", Severity::kInfo, faults.unknown_records,
        "CUPTI sent records of kinds that the trace does not store.");
    add("work_without_op", Severity::kWarning, faults.join.without_op,
        "Kernels and copies were started outside every recorded op.");
    add("work_without_time", Severity::kWarning, faults.join.without_time,
        "CUPTI could not time these kernels and copies.");
    add_diagnostics(allocator, trace);
    add("allocator_totals_differ", Severity::kError, differing_totals,
        "After an allocation or a free, torch's totals differed from the trace's.");
    add("capture_memory", Severity::kInfo, faults.most_host_bytes > 0 ? 1 : 0,
        fmt::format("CUPTI's records took up to {} of host memory. No device memory of the "
                    "trace is CUPTI's.",
                    format_bytes(faults.most_host_bytes)));
    add("nvml_missing", Severity::kInfo, faults.has_nvml ? 0 : 1,
        "Without NVML nobody knows how much device memory was in use before this process: "
        "the context's part includes it.");
}

}  // namespace profiler
