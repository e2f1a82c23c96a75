/// Measures how fast files of other tools are written and read.
///
///     formats_bench write [allocations = 1000000] [folder = the system's temporary folder]
///     formats_bench read FILE
///     formats_bench snapshot EVENTS FILE       writes a snapshot of that many events to read
///
/// "peak memory" is that of the process, so each reading is a process of its own. The size of a
/// packed file is that of its text.
#include "profiler/formats/chrome/chrome_writer.h"
#include "profiler/formats/snapshot/memory_timeline_writer.h"
#include "profiler/formats/snapshot/snapshot_writer.h"
#include "profiler/formats/trace_formats.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>

#include <sys/resource.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace {
using namespace profiler;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Writer = models::Result<void> (*)(const Trace&, const fs::path&);

/// Of the text in a file. A gzip file ends with it, modulo 4 GiB.
double size_megabytes(const fs::path& path) {
    auto size_bytes = static_cast<double>(fs::file_size(path));
    if (path.extension() == ".gz") {
        std::ifstream file(path, std::ios::binary);
        uint32_t unpacked_bytes = 0;
        file.seekg(-4, std::ios::end);
        file.read(reinterpret_cast<char*>(&unpacked_bytes), sizeof(unpacked_bytes));
        size_bytes = unpacked_bytes;
    }
    return size_bytes / 1e6;
}

int report(const fs::path& path, Clock::time_point start) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const double megabytes = size_megabytes(path);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("{:<36}{:>10.1f} MB{:>8.2f} s{:>8.0f} MB/s{:>8.0f} MB peak memory\n",
               path.filename().string(), megabytes, seconds, megabytes / seconds,
               static_cast<double>(usage.ru_maxrss) * 1024 / 1e6);
    return 0;
}

int failed(const models::Error& error) {
    fmt::print(stderr, "{}\n", error.message);
    return 1;
}

int measure(const Trace& trace, Writer write, const fs::path& path) {
    const auto start = Clock::now();
    const auto written = write(trace, path);
    if (!written) return failed(written.error());
    report(path, start);
    fs::remove(path);
    return 0;
}

int write_all(int64_t allocations, const fs::path& folder) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = allocations});
    fmt::print("{} allocations, {} ops\n", trace.allocations.size(), trace.ops.size());
    const Writer snapshot = write_snapshot;
    return measure(trace, snapshot, folder / "bench.pickle") +
           measure(trace, write_chrome_trace, folder / "bench.json") +
           measure(trace, write_chrome_trace, folder / "bench.json.gz") +
           measure(trace, write_memory_timeline, folder / "bench.raw.json");
}

int read(const fs::path& path) {
    const auto start = Clock::now();
    const auto trace = open_trace(path);
    if (!trace) return failed(trace.error());
    fmt::print("{} allocations, {} ops, {} kernels\n", trace->allocations.size(), trace->ops.size(),
               trace->kernels.size());
    return report(path, start);
}

/// An allocation and its free are two events.
int write_one_snapshot(int64_t events, const fs::path& path) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = (events + 1) / 2});
    const auto written = write_snapshot(trace, path);
    return written ? 0 : failed(written.error());
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "write";
    if (mode == "read" && argc == 3) return read(argv[2]);
    if (mode == "snapshot" && argc == 4) {
        return write_one_snapshot(std::strtoll(argv[2], nullptr, 10), argv[3]);
    }
    if (mode == "write") {
        return write_all(argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 1'000'000,
                         argc > 3 ? fs::path(argv[3]) : fs::temp_directory_path());
    }
    fmt::print(stderr, "formats_bench write|read|snapshot: see formats_bench.cpp\n");
    return 2;
}
