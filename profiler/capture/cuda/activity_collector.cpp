#include "profiler/capture/cuda/activity_collector.h"

#include <algorithm>
#include <new>
#include <utility>

namespace profiler {
namespace {

/// As many as CUPTI fills at a time: one for each of a few threads.
constexpr std::size_t kReadyBuffers = 4;

template <typename Record>
std::size_t bytes_of(const std::vector<Record>& records) {
    return records.capacity() * sizeof(Record);
}

}  // namespace

ActivityCollector::ActivityCollector(NextActivityRecord next, const CollectorOptions& options)
    : next_(next), options_(options) {
    for (std::size_t i = 0; i < std::min(kReadyBuffers, options_.max_buffers); ++i) make_buffer();
    reader_ = std::thread([this] { read_buffers(); });
}

ActivityCollector::~ActivityCollector() {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
    reader_.join();
}

/// The caller holds the lock, or is the constructor.
void ActivityCollector::make_buffer() {
    auto buffer = std::make_unique<uint64_t[]>(options_.buffer_bytes / 8);  // CUPTI aligns to 8
    buffers_.reserve(buffers_.size() + 1);
    // So that complete() and the reader, who cannot refuse a buffer, need no memory for it.
    filled_.reserve(buffers_.size() + 1);
    empty_.reserve(buffers_.size() + 1);
    empty_.push_back(reinterpret_cast<uint8_t*>(buffer.get()));
    buffers_.push_back(std::move(buffer));
}

std::span<uint8_t> ActivityCollector::request() noexcept try {
    const std::lock_guard lock(mutex_);
    if (empty_.empty()) {
        if (buffers_.size() >= options_.max_buffers) return {};
        make_buffer();
    }
    uint8_t* const buffer = empty_.back();
    empty_.pop_back();
    return {buffer, options_.buffer_bytes / 8 * 8};
} catch (const std::bad_alloc&) {
    return {};
}

void ActivityCollector::complete(uint8_t* buffer, std::size_t valid_bytes) noexcept {
    if (buffer == nullptr) return;
    {
        const std::lock_guard lock(mutex_);
        filled_.push_back({buffer, valid_bytes});  // within what request() reserved
    }
    changed_.notify_all();
}

void ActivityCollector::read_buffers() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return ended_ || !filled_.empty(); });
        if (filled_.empty()) return;
        const Filled filled = filled_.front();
        filled_.erase(filled_.begin());
        reading_ = true;
        lock.unlock();
        const std::size_t record_bytes = read(filled);
        lock.lock();
        reading_ = false;
        most_host_bytes_ =
            std::max(most_host_bytes_,
                     static_cast<int64_t>(buffers_.size() * options_.buffer_bytes + record_bytes));
        empty_.push_back(filled.buffer);
        changed_.notify_all();
    }
}

std::size_t ActivityCollector::read(const Filled& filled) {
    const std::lock_guard lock(records_mutex_);
    const std::span<uint8_t> bytes(filled.buffer, filled.valid_bytes);
    if (options_.observe) options_.observe(bytes);
    try {
        parse_activity_buffer(bytes, next_, records_, options_.cupti_version);
    } catch (const std::bad_alloc&) {
        ++records_.broken_buffers;
    }
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    return bytes_of(records_.kernels) + bytes_of(records_.copies) + bytes_of(records_.apis) +
           bytes_of(records_.events) + bytes_of(records_.stream_waits) +
           bytes_of(records_.op_correlations) + bytes_of(records_.memory) +
           bytes_of(records_.overheads);
}

ActivityRecords ActivityCollector::take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_.empty() && !reading_; });
    lock.unlock();
    const std::lock_guard records_lock(records_mutex_);
    return std::exchange(records_, {});
}

int64_t ActivityCollector::most_host_bytes() const {
    const std::lock_guard lock(mutex_);
    return most_host_bytes_;
}

}  // namespace profiler
