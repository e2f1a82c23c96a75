#pragma once

#include "profiler/allocator/simulator.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace tests {

using namespace profiler;

/// Runs a program on the simulator and records it as torch would, for rules that no real recording
/// at hand exercises. Such recordings prove that the replay reproduces the simulator. They do not
/// prove that the simulator behaves like torch.
class Recorder {
public:
    explicit Recorder(const SimulatorOptions& options, int64_t device_bytes = int64_t{1} << 40)
        : driver_(device_bytes), simulator_(options, driver_) {
        const AllocatorSettings& settings = options.settings;
        recording_.settings.max_split_bytes =
            settings.max_split_bytes == kUnlimitedBytes ? -1 : settings.max_split_bytes;
        recording_.settings.gc_threshold = settings.gc_threshold;
        recording_.settings.expandable_segments = settings.expandable_segments;
        recording_.settings.tie_order = options.tie_order;
        recording_.settings.roundup_power2_divisions.assign(
            settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end());
    }

    /// The address, or -1 if memory ran out.
    int64_t allocate(int64_t size_bytes, int64_t stream = 0, int64_t pool = 0) {
        const auto block = simulator_.allocate({size_bytes, stream, pool});
        take_events();
        if (!block) {
            add(RecordedAction::kOom, simulator_.out_of_memory().free_bytes, size_bytes, stream);
            return -1;
        }
        const int64_t address = simulator_.block(*block).address;
        add(RecordedAction::kAlloc, address, size_bytes, stream);
        live_[address] = {*block, size_bytes, stream};
        return address;
    }

    void record_stream(int64_t address, int64_t stream) {
        simulator_.record_stream(live_.at(address).block, stream);
        live_.at(address).is_shared |= stream != live_.at(address).stream;
    }

    void free(int64_t address) {
        const Live live = live_.at(address);
        live_.erase(address);
        add(RecordedAction::kFreeRequested, address, live.size_bytes, live.stream);
        simulator_.free(live.block);
        if (!live.is_shared) {
            add(RecordedAction::kFreeCompleted, address, live.size_bytes, live.stream);
        }
    }

    void finish_stream_work(int64_t stream) { simulator_.finish_stream_work(stream); }
    void empty_cache() {
        simulator_.empty_cache();
        take_events();
    }

    Simulator& simulator() { return simulator_; }

    /// Without the events before `first_event`, like a full ring buffer.
    AllocatorRecording recording(std::size_t first_event = 0) const {
        AllocatorRecording cut = recording_;
        cut.events.erase(cut.events.begin(),
                         cut.events.begin() + static_cast<std::ptrdiff_t>(first_event));
        cut.segments = simulator_.segments();
        return cut;
    }
    std::size_t num_events() const { return recording_.events.size(); }

private:
    struct Live {
        BlockHandle block = kNoBlock;
        int64_t size_bytes = 0;
        int64_t stream = 0;
        bool is_shared = false;
    };

    void add(RecordedAction action, int64_t address, int64_t size_bytes, int64_t stream) {
        recording_.events.push_back(
            {.action = action, .address = address, .size_bytes = size_bytes, .stream = stream});
    }
    void take_events() {
        for (RecordedEvent event : simulator_.take_events()) {
            event.pool = -1;  // like recorders that do not write pools
            recording_.events.push_back(event);
        }
        simulator_.take_completed();
    }

    ModelDriver driver_;
    Simulator simulator_;
    std::map<int64_t, Live> live_;
    AllocatorRecording recording_;
};

/// A program on a device of 96 MiB. Two segments of 40 MiB hold 30 MiB each when it asks for
/// 18 MiB: 16 MiB are left, and 20 MiB are cached in two pieces. In one piece they would do. Its
/// first eight events take the segments and free them whole.
inline AllocatorRecording out_of_memory_recording(std::size_t first_event = 0) {
    Recorder recorder({}, 96 * kMiB);
    const int64_t a = recorder.allocate(40 * kMiB);
    const int64_t b = recorder.allocate(40 * kMiB);
    recorder.free(a);
    recorder.free(b);
    recorder.allocate(30 * kMiB);
    recorder.allocate(30 * kMiB);
    recorder.allocate(18 * kMiB);
    return recorder.recording(first_event);
}

struct RandomProgram {
    unsigned seed = 1;
    int num_steps = 3'000;
    int num_streams = 1;
    int64_t max_bytes = 24 * kMiB;
    int max_live = 60;
    bool share_streams = false;
    int empty_cache_every = 0;  // 0 = never
};

/// Allocates and frees at random. Sizes are of all scales, so that both pools, splits and rests
/// occur.
inline void run_random(Recorder& recorder, const RandomProgram& program) {
    std::mt19937_64 random(program.seed);
    const auto below = [&](int64_t limit) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    };
    std::vector<int64_t> live;
    for (int step = 0; step < program.num_steps; ++step) {
        const bool is_full = static_cast<int>(live.size()) >= program.max_live;
        if (!is_full && (live.empty() || below(100) < 55)) {
            const int64_t scale = program.max_bytes >> below(14);
            const int64_t address = recorder.allocate(1 + below(std::max<int64_t>(scale, 2)),
                                                      below(program.num_streams));
            if (address >= 0) {
                live.push_back(address);
                if (program.share_streams && below(4) == 0) {
                    recorder.record_stream(address, below(program.num_streams));
                }
                continue;
            }
        }
        if (!live.empty()) {
            std::swap(live[static_cast<std::size_t>(below(static_cast<int64_t>(live.size())))],
                      live.back());
            recorder.free(live.back());
            live.pop_back();
        }
        if (program.share_streams && below(10) == 0) {
            recorder.finish_stream_work(below(program.num_streams));
        }
        if (program.empty_cache_every > 0 && below(program.empty_cache_every) == 0) {
            recorder.empty_cache();
        }
    }
}

}  // namespace tests
