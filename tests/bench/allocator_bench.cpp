/// How many allocator events a second the simulator handles, and how fast snapshots are replayed.
///
///     allocator_bench [events = 10000000] [snapshot...]
///
/// Streams of requests: layers of training steps, and random allocations and frees with few and
/// with many live blocks. An event is an allocation or a free. Times are processor time, the best
/// of three runs. The numbers are printed, not judged.
#include "profiler/allocator/replay.h"
#include "profiler/allocator/request_stream.h"
#include "profiler/allocator/simulation.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/trace/units.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <random>

namespace {
using namespace profiler;

/// Processor time of this process, so that other processes count less.
class Stopwatch {
public:
    double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

private:
    std::clock_t start_ = std::clock();
};

void print_rate(std::string_view name, std::size_t events, double seconds) {
    fmt::print("  {:<34}{:>12} events {:>8.2f} M/s {:>7.1f} ns an event\n", name,
               format_count(static_cast<int64_t>(events)),
               static_cast<double>(events) / seconds / 1e6,
               seconds * 1e9 / static_cast<double>(events));
}

/// The best of three runs: the machine may be busy.
void measure(std::string_view name, const RequestStream& stream, std::string_view conf) {
    const AllocatorSettings settings = *parse_alloc_conf(conf);
    double best = 1e9;
    for (int run = 0; run < 3; ++run) {
        const Stopwatch watch;
        const Simulation simulation = simulate(stream, {.settings = settings});
        best = std::min(best, watch.seconds());
        if (simulation.out_of_memory) fmt::print("  (out of memory)\n");
    }
    print_rate(conf.empty() ? std::string(name) : fmt::format("{}, {}", name, conf),
               stream.requests.size(), best);
}

RequestStream random_stream(std::size_t events, std::size_t max_live) {
    std::mt19937_64 random(1);
    RequestStream stream;
    std::vector<uint32_t> live;
    while (stream.requests.size() < events) {
        if (live.size() < max_live && (live.size() < max_live / 2 || random() % 2 == 0)) {
            const auto scale = int64_t{1} << (9 + random() % 14);  // 512 B to 4 MiB
            live.push_back(stream.allocate(1 + static_cast<int64_t>(random() % 1'000'003) % scale));
        } else {
            std::swap(live[random() % live.size()], live.back());
            stream.free(live.back());
            live.pop_back();
        }
    }
    return stream;
}

RequestStream training_stream(std::size_t events) {
    return request_stream_of(
               tests::make_synthetic_trace({.num_allocations = static_cast<int64_t>(events / 2)}),
               {})
        .value();
}

/// Replays one recording again and again until `events` events are simulated.
int measure_snapshot(const char* path, std::size_t events) {
    const Stopwatch reading_watch;
    const auto snapshot = read_pytorch_snapshot(path);
    if (!snapshot) {
        fmt::print("{}\n", snapshot.error().message);
        return 1;
    }
    const double reading = reading_watch.seconds();
    const AllocatorRecording& recording = snapshot->main();
    const AllocatorSettings settings = settings_of(recording.settings);
    fmt::print("{}\n  read in {}\n", path, format_duration(static_cast<int64_t>(reading * 1e9)));
    std::size_t done = 0;
    const Stopwatch watch;
    while (done < events / 10) {
        const auto report = replay(recording, settings);
        if (!report || !report->is_exact()) fmt::print("  (not exact)\n");
        done += recording.events.size();
    }
    print_rate("replay, start rebuilt and checked", done, watch.seconds());
    const auto trace = trace_of({recording});
    if (!trace) return 1;
    if (const auto stream = stream_to_failure(*trace, profiled_device(*trace))) {
        const SimulationOptions options{.from_recorded_start = false};
        const Stopwatch simulation_watch;
        std::size_t simulated = 0;
        for (; simulated < events; simulated += stream->requests.size()) simulate(*stream, options);
        print_rate("simulation from empty", simulated, simulation_watch.seconds());
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t events =
        argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : 10'000'000;
    fmt::print("simulation\n");
    const RequestStream training = training_stream(events);
    measure("training steps", training, "");
    measure("training steps", training, "expandable_segments:True");
    measure("random, up to 2,000 live", random_stream(events, 2'000), "");
    measure("random, up to 100,000 live", random_stream(events, 100'000), "");
    int failures = 0;
    for (int i = 2; i < argc; ++i) failures += measure_snapshot(argv[i], events);
    return failures;
}
