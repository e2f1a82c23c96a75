/// Times the analyses that run when a large trace is opened: milliseconds per analysis.
///     build/bin/analysis_bench [allocations = 1000000]
#include "profiler/analysis/blocks/block_history.h"
#include "profiler/analysis/ops/activity.h"
#include "profiler/analysis/step/breakdown.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/analysis/step/module_spans.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/analysis/step/step_report.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace {

template <typename Work>
void report(const char* what, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    const int64_t result = work();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    fmt::print("{:<40} {:9.1f} ms   {}\n", what, elapsed.count(), result);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace profiler;
    const int64_t allocations = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
    const Trace trace = tests::make_synthetic_trace({.num_allocations = allocations});
    PeakReport peak;
    report("find_peak", [&] {
        peak = find_peak(trace);
        return peak.allocated_bytes;
    });
    report("break_down by layer",
           [&] { return static_cast<int64_t>(break_down(trace, peak, GroupBy::kLayer).size()); });
    report("break_down by tensor",
           [&] { return static_cast<int64_t>(break_down(trace, peak, GroupBy::kTensor).size()); });
    report("build_ledger", [&] { return build_ledger(trace).total_bytes; });
    report("MemoryCurve", [&] { return MemoryCurve(trace).end_ns(); });
    report("report_step", [&] { return report_step(trace).peak.allocated_bytes; });
    const StepReport step = report_step(trace);
    report("report_diagnostics",
           [&] { return static_cast<int64_t>(report_diagnostics(trace, step).size()); });
    report("Activity", [&] { return static_cast<int64_t>(Activity(trace).empty()); });
    report("ModuleSpans", [&] {
        const ModuleSpans spans(trace);
        return int64_t{0};
    });
    report("names_of_storages",
           [&] { return static_cast<int64_t>(names_of_storages(trace).size()); });
    report("BlockHistory", [&] {
        const BlockHistory history(trace);
        return int64_t{0};
    });
    const MemoryCurve curve(trace);
    const int64_t middle_ns = (curve.start_ns() + curve.end_ns()) / 2;
    const int64_t width_ns = curve.end_ns() - curve.start_ns();
    for (const int64_t zoom : {1, 16, 1024, 1 << 20}) {
        const std::string what = fmt::format("sample 1920 columns, zoom {}", zoom);
        report(what.c_str(), [&] {
            const int64_t half_ns = std::max<int64_t>(width_ns / zoom / 2, 1000);
            const auto bins = curve.sample(middle_ns - half_ns, middle_ns + half_ns, 1920);
            return static_cast<int64_t>(bins.size());
        });
    }
}
