/// Measures how long it takes to write and to open a large trace, and how much memory opening
/// needs.
///
///     trace_bench [allocations = 1000000] [folder = the system's temporary folder]
///
/// A child process opens the trace, so its peak memory includes nothing else. This program only
/// prints the numbers; docs/dev/measured.md states the limits.
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/units.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {
using namespace profiler;
using Clock = std::chrono::steady_clock;

int64_t elapsed_ns(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

int64_t peak_memory_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_maxrss} * 1024;  // ru_maxrss is in KiB
}

/// Resets the peak, because exec and fork keep it. "5" is the command for that (proc(5),
/// clear_refs).
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
    }
    return peak_memory_bytes();
}

void print_size_of_tables(const Trace& trace) {
    Trace::for_each_table(trace, [](std::string_view name, const auto& table) {
        if (!table.empty()) {
            fmt::print("  {:<16}{:>12} rows\n", name,
                       format_count(static_cast<int64_t>(table.size())));
        }
    });
}

int open_in_this_process(const std::filesystem::path& path) {
    reset_peak_memory();
    const int64_t before_bytes = peak_resident_bytes();
    for (int run = 0; run < 3; ++run) {
        const auto start = Clock::now();
        const auto trace = read_trace(path);
        if (!trace) {
            fmt::print("{}\n", trace.error().message);
            return 1;
        }
        fmt::print("open      {:>10}\n", format_duration(elapsed_ns(start)));
    }
    fmt::print("memory    {:>10} more peak memory while opening\n",
               format_bytes(peak_resident_bytes() - before_bytes));
    return 0;
}

int write_then_open(int64_t num_allocations, const std::filesystem::path& folder,
                    const char* program) {
    const std::filesystem::path path = folder / fmt::format("trace_bench_{}.tscope", getpid());
    const Trace trace = tests::make_synthetic_trace({.num_allocations = num_allocations});
    print_size_of_tables(trace);
    const auto start = Clock::now();
    if (const auto written = write_trace(trace, path); !written) {
        fmt::print("{}\n", written.error().message);
        return 1;
    }
    fmt::print("write     {:>10}\n", format_duration(elapsed_ns(start)));
    fmt::print("file      {:>10}\n",
               format_bytes(static_cast<int64_t>(std::filesystem::file_size(path))));
    std::fflush(stdout);

    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, "--open", path.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::filesystem::remove(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--open") return open_in_this_process(argv[2]);
    const int64_t num_allocations = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
    const std::filesystem::path folder =
        argc > 2 ? argv[2] : std::filesystem::temp_directory_path();
    return write_then_open(num_allocations, folder, argv[0]);
}
