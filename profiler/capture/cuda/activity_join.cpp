#include "profiler/capture/cuda/activity_join.h"

#include "profiler/trace/collective_rows.h"
#include "profiler/trace/units.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <utility>

namespace profiler {
namespace {

constexpr std::array<std::string_view, 7> kCopyKindNames{
    "unknown",      "host_to_device", "device_to_host", "device_to_device",
    "host_to_host", "peer_to_peer",   "memset"};

std::string demangle(std::string_view mangled) {
    const std::string text(mangled);
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name(
        abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && name ? std::string(name.get()) : text;
}

/// CUPTI's buffers hold records of several streams and threads, each in its own order.
template <typename Record>
void sort_by_start(std::vector<Record>& records) {
    std::ranges::stable_sort(records, {}, &Record::start_ns);
}

}  // namespace

ActivityJoin::ActivityJoin(Trace& trace, StreamRows& streams, JoinOptions options)
    : trace_(trace), streams_(streams), options_(std::move(options)), order_(trace) {}

int64_t ActivityJoin::time_of(uint64_t cupti_ns) const {
    return cupti_ns == 0 ? -1 : static_cast<int64_t>(cupti_ns) + options_.clock_offset_ns;
}

// ---- the op of a call ------------------------------------------------------------------------

void ActivityJoin::list_new_ops() {
    const auto threads = trace_.ops.column<&Op::thread>();
    for (; listed_ops_ < threads.size(); ++listed_ops_) {
        const Id<Thread> thread = threads[listed_ops_];
        if (!thread.valid()) continue;
        if (thread.index() >= thread_ops_.size()) thread_ops_.resize(thread.index() + 1);
        thread_ops_[thread.index()].push_back(Id<Op>(listed_ops_));
    }
}

/// Ops of a thread nest: the innermost at a time is the last one that began, or one around it.
Id<Op> ActivityJoin::op_at(uint32_t thread, int64_t time_ns) const {
    const auto row = threads_.find(thread);
    if (row == threads_.end() || row->second.index() >= thread_ops_.size()) return {};
    const std::vector<Id<Op>>& ops = thread_ops_[row->second.index()];
    const auto starts = trace_.ops.column<&Op::start_ns>();
    const auto after =
        std::ranges::upper_bound(ops, time_ns, {}, [&](Id<Op> op) { return starts[op.index()]; });
    if (after == ops.begin()) return {};
    Id<Op> op = *std::prev(after);
    while (op.valid() && trace_.ops.get<&Op::end_ns>(op) < time_ns) {
        op = trace_.ops.get<&Op::parent>(op);
    }
    return op;
}

void ActivityJoin::add_origins(const ActivityRecords& records) {
    std::vector<Origin> added;
    added.reserve(records.op_correlations.size());
    for (const OpCorrelation& record : records.op_correlations) {
        const Id<Op> op = op_of_external(record.external_id, trace_);
        if (op.valid()) added.push_back({record.correlation, op});
    }
    std::ranges::stable_sort(added, {}, &Origin::correlation);
    // Calls without an id, by where they were made.
    const std::size_t with_id = added.size();
    for (const ApiRecord& api : records.apis) {
        const bool known = std::ranges::binary_search(std::span(added).first(with_id),
                                                      api.correlation, {}, &Origin::correlation);
        if (known || api.start_ns == 0) continue;
        const Id<Op> op = op_at(api.thread, time_of(api.start_ns));
        if (op.valid()) added.push_back({api.correlation, op});
    }
    std::ranges::stable_sort(added, {}, &Origin::correlation);
    const auto middle = std::ssize(origins_);
    origins_.insert(origins_.end(), added.begin(), added.end());
    std::ranges::inplace_merge(origins_, origins_.begin() + middle, {}, &Origin::correlation);
}

Id<Op> ActivityJoin::op_of(uint32_t correlation) const {
    const auto found = std::ranges::lower_bound(origins_, correlation, {}, &Origin::correlation);
    return found != origins_.end() && found->correlation == correlation ? found->op : Id<Op>();
}

// ---- rows ------------------------------------------------------------------------------------

Id<Thread> ActivityJoin::thread_row(uint32_t system_id) {
    const auto [found, is_new] = threads_.try_emplace(system_id);
    if (is_new) {
        found->second = trace_.threads.append(
            {.name = trace_.strings.intern("worker"), .system_id = system_id});
    }
    return found->second;
}

StringId ActivityJoin::kernel_name(std::string_view mangled) {
    const auto [found, is_new] = kernel_names_.try_emplace(mangled.data());
    if (is_new) found->second = trace_.strings.intern(demangle(mangled));
    return found->second;
}

template <auto kOp, typename Table, typename Row>
void ActivityJoin::add_late_ops(Table& table, std::vector<Id<Row>>& rows) {
    std::erase_if(rows, [&](Id<Row> row) {
        const Id<Op> op = op_of(static_cast<uint32_t>(table.template get<&Row::correlation>(row)));
        if (!op.valid()) return false;
        table.template set<kOp>(row, op);
        if constexpr (std::is_same_v<Row, Kernel>) link_collective(trace_, row);
        return true;
    });
}

void ActivityJoin::add_kernels(std::vector<KernelRecord>& kernels, Launches& launches) {
    sort_by_start(kernels);
    for (const KernelRecord& kernel : kernels) {
        const Id<Op> op = op_of(kernel.correlation);
        without_time_ += kernel.start_ns == 0 || kernel.end_ns == 0 ? 1 : 0;
        const Id<Kernel> row = trace_.kernels.append(
            {.name = kernel_name(kernel.name),
             .stream = streams_.row_of(options_.stream_handle(kernel.context, kernel.stream)),
             .op = op,
             .correlation = kernel.correlation,
             .start_ns = time_of(kernel.start_ns),
             .end_ns = time_of(kernel.end_ns),
             .grid_x = kernel.grid.x,
             .grid_y = kernel.grid.y,
             .grid_z = kernel.grid.z,
             .block_x = kernel.block.x,
             .block_y = kernel.block.y,
             .block_z = kernel.block.z,
             .registers_per_thread = kernel.registers_per_thread,
             .shared_memory_bytes = kernel.shared_memory_bytes});
        launches.push_back({kernel.correlation, kernel.stream, row, {}});
        if (op.valid()) {
            link_collective(trace_, row);
        } else {
            kernels_without_op_.push_back(row);
        }
    }
}

void ActivityJoin::add_copies(std::vector<CopyRecord>& copies, Launches& launches) {
    sort_by_start(copies);
    for (const CopyRecord& copy : copies) {
        const Id<Op> op = op_of(copy.correlation);
        without_time_ += copy.start_ns == 0 || copy.end_ns == 0 ? 1 : 0;
        const Id<Memcpy> row = trace_.memcpys.append(
            {.kind = trace_.strings.intern(kCopyKindNames[static_cast<std::size_t>(copy.kind)]),
             .stream = streams_.row_of(options_.stream_handle(copy.context, copy.stream)),
             .op = op,
             .correlation = copy.correlation,
             .start_ns = time_of(copy.start_ns),
             .end_ns = time_of(copy.end_ns),
             .size_bytes = copy.size_bytes});
        launches.push_back({copy.correlation, copy.stream, {}, row});
        if (!op.valid()) copies_without_op_.push_back(row);
    }
}

/// A call of the runtime calls the driver under the same correlation: one row says it all.
void ActivityJoin::add_apis(std::vector<ApiRecord>& apis) {
    std::vector<uint32_t> runtime;
    for (const ApiRecord& api : apis) {
        if (api.domain == ApiDomain::kRuntime) runtime.push_back(api.correlation);
    }
    std::sort(runtime.begin(), runtime.end());
    sort_by_start(apis);
    for (const ApiRecord& api : apis) {
        if (api.domain == ApiDomain::kDriver &&
            std::binary_search(runtime.begin(), runtime.end(), api.correlation)) {
            continue;
        }
        const uint64_t key = uint64_t{api.function} * 2 + static_cast<uint64_t>(api.domain);
        const auto [name, is_new] = api_names_.try_emplace(key);
        if (is_new) {
            name->second = trace_.strings.intern(options_.api_name(api.domain, api.function));
        }
        trace_.apis.append({.name = name->second,
                            .thread = thread_row(api.thread),
                            .op = op_of(api.correlation),
                            .correlation = api.correlation,
                            .start_ns = time_of(api.start_ns),
                            .end_ns = time_of(api.end_ns)});
    }
}

void ActivityJoin::add_overheads(const std::vector<OverheadRecord>& overheads) {
    for (const OverheadRecord& overhead : overheads) {
        trace_.annotations.append({.text = trace_.strings.intern(overhead.name),
                                   .start_ns = time_of(overhead.start_ns),
                                   .end_ns = time_of(overhead.end_ns)});
    }
}

/// A mark for each piece of memory that the process took from the driver or gave back, be it a
/// segment of the allocator's or a library's own.
void ActivityJoin::add_memory_marks(std::vector<MemoryRecord>& records) {
    std::ranges::stable_sort(records, {}, &MemoryRecord::time_ns);
    for (const MemoryRecord& record : records) {
        const std::string_view library =
            record.library.substr(record.library.find_last_of('/') + 1);  // 0 where there is no /
        const int64_t time_ns = time_of(record.time_ns);
        trace_.annotations.append(
            {.text = trace_.strings.intern(fmt::format("driver: {} of {} memory {}{}{}",
                                                       format_bytes(record.size_bytes),
                                                       record.is_device_memory ? "device" : "other",
                                                       record.is_release ? "given back" : "taken",
                                                       library.empty() ? "" : " by ", library)),
             .start_ns = time_ns,
             .end_ns = time_ns});
    }
}

void ActivityJoin::add(ActivityRecords records) {
    for (; listed_threads_ < trace_.threads.size(); ++listed_threads_) {
        const Id<Thread> row(listed_threads_);
        threads_.insert_or_assign(trace_.threads.get<&Thread::system_id>(row), row);
    }
    list_new_ops();
    add_origins(records);
    add_late_ops<&Kernel::op>(trace_.kernels, kernels_without_op_);
    add_late_ops<&Memcpy::op>(trace_.memcpys, copies_without_op_);
    Launches launches;
    add_kernels(records.kernels, launches);
    add_copies(records.copies, launches);
    order_.add(launches, records.events, records.stream_waits);
    add_apis(records.apis);
    add_overheads(records.overheads);
    add_memory_marks(records.memory);
}

}  // namespace profiler
