#pragma once

#include "profiler/allocator/driver.h"
#include "profiler/trace/allocator_recording.h"

#include <vector>

/// Gives out segments at the addresses of a recording.
namespace profiler {

class RecordedDriver : public Driver {
public:
    /// A segment_alloc or segment_map that the next allocation may cause.
    void expect(const RecordedEvent& event) { expected_.push_back({event, false}); }
    bool expects_segment() const;
    const auto& expected() const { return expected_; }
    void forget() { expected_.clear(); }

    std::optional<int64_t> allocate_segment(int64_t size_bytes) override;
    void free_segment(int64_t, int64_t size_bytes) override { held_bytes_ -= size_bytes; }
    int64_t reserve_addresses(int64_t size_bytes, int64_t page_bytes) override;
    void release_addresses(int64_t, int64_t) override {}
    bool map(int64_t address, int64_t size_bytes) override;
    void unmap(int64_t, int64_t size_bytes) override { held_bytes_ -= size_bytes; }
    int64_t total_bytes() const override { return int64_t{1} << 42; }
    int64_t free_bytes() const override { return total_bytes(); }

private:
    struct Expected {
        RecordedEvent event;
        bool is_taken = false;
    };
    bool hold(int64_t size_bytes);
    int64_t nowhere(int64_t size_bytes);

    std::vector<Expected> expected_;
    int64_t held_bytes_ = 0;
    int64_t next_unknown_ = kNowhere;
    static constexpr int64_t kNowhere = int64_t{1} << 58;  // above every address of a device
};

}  // namespace profiler
