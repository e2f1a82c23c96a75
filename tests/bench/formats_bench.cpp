/// Measures how fast a large trace is written for other tools.
///
///     formats_bench [allocations = 1000000] [folder = the system's temporary folder]
#include "profiler/formats/chrome_writer.h"
#include "profiler/formats/memory_timeline_writer.h"
#include "profiler/formats/snapshot_writer.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>

#include <sys/resource.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {
using namespace profiler;
using Clock = std::chrono::steady_clock;
using Writer = models::Result<void> (*)(const Trace&, const std::filesystem::path&);

int measure(const Trace& trace, Writer write, const std::filesystem::path& path) {
    const auto start = Clock::now();
    const auto written = write(trace, path);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!written) {
        fmt::print(stderr, "{}\n", written.error().message);
        return 1;
    }
    const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("{:<16}{:>10.1f} MB{:>8.2f} s{:>8.0f} MB/s{:>8} MiB peak memory so far\n",
               path.filename().string(), megabytes, seconds, megabytes / seconds,
               usage.ru_maxrss / 1024);
    std::filesystem::remove(path);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const int64_t allocations = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 1'000'000;
    const std::filesystem::path folder =
        argc > 2 ? std::filesystem::path(argv[2]) : std::filesystem::temp_directory_path();
    const Trace trace = tests::make_synthetic_trace({.num_allocations = allocations});
    fmt::print("{} allocations, {} ops\n", trace.allocations.size(), trace.ops.size());
    const Writer snapshot = write_snapshot;
    return measure(trace, snapshot, folder / "bench.pickle") +
           measure(trace, write_chrome_trace, folder / "bench.json") +
           measure(trace, write_chrome_trace, folder / "bench.json.gz") +
           measure(trace, write_memory_timeline, folder / "bench.raw.json");
}
