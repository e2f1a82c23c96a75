#pragma once

#include "profiler/formats/kineto/kineto_events.h"
#include "profiler/formats/parts/span_tree.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace profiler::kineto {

/// The rows of `thread`, `op`, `api`, `kernel`, `memcpy` and `annotation` of a trace, and what they
/// have to do with each other.
///
///     op ──(innermost on its thread)── api ──(correlation id, else flow)── kernel
///     op ──(sequence number, else flow)── backward op
class OpRows {
public:
    /// `start_ns` is time 0 of the trace on the clock of the file.
    OpRows(const KinetoEvents& events, int64_t start_ns, Trace& trace);
    void add();

    /// The innermost op on a thread of KinetoEvents at a time of the trace; none outside of ops.
    Id<Op> innermost(int32_t thread, int64_t time_ns) const;
    /// The ops of one thread; items are indices of KinetoEvents::spans.
    const SpanTree& tree(int32_t thread) const { return trees_[static_cast<std::size_t>(thread)]; }
    /// The thread with the most ops that are not of backward.
    int32_t main_thread() const { return main_thread_; }
    static constexpr int64_t kHost = -1;
    /// The device's row, added when it first appears.
    Id<Device> device_row(int64_t device);
    Id<Stream> stream_row(int64_t device, int64_t stream);

private:
    void add_ops();
    void add_threads();
    void add_annotations();
    void link_backward();
    void link_by_arrows();
    void link_by_numbers();
    void add_calls();
    void add_collectives();
    Id<Communicator> row_of(const Communicator& communicator);
    void add_device_work();
    Id<Op> op_of(const DeviceWork& work) const;
    int64_t at(int64_t file_ns) const { return file_ns - start_ns_; }

    const KinetoEvents& events_;
    int64_t start_ns_;
    Trace& trace_;
    std::vector<Id<Thread>> thread_rows_;
    std::unordered_map<int32_t, Id<Communicator>> communicators_;  // by name
    std::vector<SpanTree> trees_;                                  // by thread of the file
    std::vector<Id<Op>> op_of_span_;                               // by index of the span
    std::unordered_map<int64_t, Id<Op>> op_of_correlation_, op_of_external_id_;
    std::map<int64_t, Id<Device>> devices_;
    std::map<std::pair<int64_t, int64_t>, Id<Stream>> streams_;
    int32_t main_thread_ = -1;
};

}  // namespace profiler::kineto
