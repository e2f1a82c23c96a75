#pragma once

#include "profiler/capture/torch_adapter/activity_records.h"
#include "profiler/capture/torch_adapter/cupti.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

/// Gives buffers to CUPTI and reads the filled ones.
///
///     workload's thread        CUPTI's thread           our thread
///     request() ─► empty ─► ... filled ─► complete() ─► parse, then empty again
///
/// request() and complete() only move a pointer under their lock, so that the workload never waits
/// for parsing. Our thread also zeroes what it has read, and the first buffers are made before any
/// is asked for. If our thread falls behind, new buffers are allocated, up to a limit. Beyond it
/// CUPTI drops records and counts them.
namespace profiler {

struct CollectorOptions {
    std::size_t buffer_bytes = 4 << 20;  // as in Kineto
    std::size_t max_buffers = 128;       // 512 MiB
    uint32_t cupti_version = CUPTI_API_VERSION;
    /// Called with each filled buffer before it is read, on the reading thread; may be empty.
    std::function<void(std::span<uint8_t>)> observe = {};
};

class ActivityCollector {
public:
    explicit ActivityCollector(NextActivityRecord next, const CollectorOptions& options = {});
    ~ActivityCollector();
    ActivityCollector(const ActivityCollector&) = delete;
    ActivityCollector& operator=(const ActivityCollector&) = delete;

    // For CUPTI, any thread.
    /// An empty buffer, or an empty span if the limit is reached.
    std::span<uint8_t> request() noexcept;
    /// Takes back a buffer of request(), with `valid_bytes` of records in it.
    void complete(uint8_t* buffer, std::size_t valid_bytes) noexcept;

    /// Waits until all completed buffers are read. Returns their records since the last call.
    ActivityRecords take();

    /// The most host memory that buffers and waiting records have taken so far.
    int64_t most_host_bytes() const;

private:
    struct Filled {
        uint8_t* buffer = nullptr;
        std::size_t valid_bytes = 0;
    };
    void make_buffer();
    void read_buffers();
    /// Returns the bytes that all waiting records take.
    std::size_t read(const Filled& filled);

    const NextActivityRecord next_;
    const CollectorOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::unique_ptr<uint64_t[]>> buffers_;  // guarded by mutex_, as all up to records_
    std::vector<uint8_t*> empty_;
    std::vector<Filled> filled_;  // oldest first
    int64_t most_host_bytes_ = 0;
    bool reading_ = false;
    bool ended_ = false;
    mutable std::mutex records_mutex_;
    ActivityRecords records_;  // guarded by records_mutex_
    std::thread reader_;       // last: it uses the others
};

}  // namespace profiler
