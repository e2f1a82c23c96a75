#include "profiler/capture/processor_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace profiler {
namespace {

constexpr double kLeastShare = 0.9;

double read_processor_s() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

void ProcessorShare::begin() {
    start_ = std::chrono::steady_clock::now();
    start_processor_s_ = read_processor_s();
}

void ProcessorShare::end() {
    wall_ += std::chrono::steady_clock::now() - start_;
    processor_s_ += read_processor_s() - start_processor_s_;
}

std::string busy_machine_note(double share) {
    if (share >= kLeastShare) return {};
    return "Something else used the CPU during the measurement, so its times are too long: "
           "measure again when the machine is idle.";
}

void note_busy_machine(Trace& trace, double share) {
    if (share >= kLeastShare) return;
    const StringId code = trace.strings.intern(kMachineBusy);
    const auto codes = trace.diagnostics.column<&Diagnostic::code>();
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) return;
    add_diagnostic(
        trace, {.code = kMachineBusy,
                .severity = Severity::kWarning,
                .explanation = fmt::format(
                    "Something else ran on this machine: the steps got {:.0f} % of the time of one "
                    "CPU. Memory is right, but times are too long; capture again when the machine "
                    "is idle.",
                    share * 100)});
}

}  // namespace profiler
