#pragma once

#include "profiler/capture/cuda/stream_order.h"
#include "profiler/capture/torch_adapter/activity_records.h"
#include "profiler/trace/allocator_rows.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Turns activity records into rows of `kernel`, `memcpy`, `api` and `annotation`, each with its
/// op, and of `stream_wait`.
///
///     kernel ──correlation──► API call ──external id──► op     the id was pushed when the op began
///                                      ──thread, time─► op     else: the innermost op that ran on
///                                                              the call's thread when it began
///
/// A pure function of its records and of the trace's ops: no torch, no CUPTI.
namespace profiler {

struct JoinOptions {
    int64_t clock_offset_ns = 0;  // time in the trace = CUPTI's time + this
    /// The CUDA handle of a stream, from CUPTI's numbers of the context and the stream.
    std::function<int64_t(uint32_t context, uint32_t stream)> stream_handle;
    /// "cudaLaunchKernel", from CUPTI's callback id.
    std::function<std::string(ApiDomain domain, uint32_t function)> api_name;
};

/// How many records so far could not be joined.
struct JoinCounts {
    int64_t without_op = 0;    // kernels and copies whose call has not come yet, or had no op
    int64_t without_time = 0;  // kernels and copies: their times are -1
};

/// External id of an op: 0 stands for none.
inline uint64_t external_id_of(Id<Op> op) { return static_cast<uint64_t>(op.value) + 1; }
/// Invalid: no op of this trace.
inline Id<Op> op_of_external(uint64_t external_id, const Trace& trace) {
    return external_id == 0 || external_id > trace.ops.size() ? Id<Op>() : Id<Op>(external_id - 1);
}

class ActivityJoin {
public:
    /// The allocator's rows use the same `streams`.
    ActivityJoin(Trace& trace, StreamRows& streams, JoinOptions options);

    /// Adds the rows of `records`, by start time. Call it between steps, when the ops of the
    /// records have ended. The records of a call may come in any order, also in later calls of
    /// add().
    void add(ActivityRecords records);

    JoinCounts counts() const {
        return {.without_op =
                    static_cast<int64_t>(kernels_without_op_.size() + copies_without_op_.size()),
                .without_time = without_time_};
    }

private:
    /// The op of a call of the API, and of all work with the call's correlation id.
    struct Origin {
        uint32_t correlation = 0;
        Id<Op> op;
    };
    void list_new_ops();
    Id<Op> op_at(uint32_t thread, int64_t time_ns) const;
    void add_origins(const ActivityRecords& records);
    Id<Op> op_of(uint32_t correlation) const;
    int64_t time_of(uint64_t cupti_ns) const;
    Id<Thread> thread_row(uint32_t system_id);
    StringId kernel_name(std::string_view mangled);

    /// Rows whose call was not known yet, when it is by now.
    template <auto kOp, typename Table, typename Row>
    void add_late_ops(Table& table, std::vector<Id<Row>>& rows);
    using Launches = std::vector<StreamOrder::Launch>;
    void add_kernels(std::vector<KernelRecord>& kernels, Launches& launches);
    void add_copies(std::vector<CopyRecord>& copies, Launches& launches);
    void add_apis(std::vector<ApiRecord>& apis);
    void add_overheads(const std::vector<OverheadRecord>& overheads);
    void add_memory_marks(std::vector<MemoryRecord>& records);

    Trace& trace_;
    StreamRows& streams_;
    JoinOptions options_;
    StreamOrder order_;
    int64_t without_time_ = 0;
    std::vector<Id<Kernel>> kernels_without_op_;
    std::vector<Id<Memcpy>> copies_without_op_;
    std::size_t listed_ops_ = 0;
    std::size_t listed_threads_ = 0;
    std::vector<std::vector<Id<Op>>> thread_ops_;             // by row of thread; by start
    std::unordered_map<int64_t, Id<Thread>> threads_;         // by system id
    std::vector<Origin> origins_;                             // by correlation
    std::unordered_map<const char*, StringId> kernel_names_;  // CUPTI gives a kernel one pointer
    std::unordered_map<uint64_t, StringId> api_names_;
};

}  // namespace profiler
