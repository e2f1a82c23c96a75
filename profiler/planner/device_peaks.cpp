#include "profiler/planner/device_peaks.h"

#include "profiler/analysis/step/diagnostics.h"

#include <fmt/format.h>

namespace profiler {
namespace {

/// Of a trace whose device is no processor.
bool ran_on_gpu(const Trace& trace) {
    const Source source = trace.run().source;
    return source == Source::kPredicted || source == Source::kMeasuredCuda ||
           !trace.kernels.empty();
}

/// A predicted step names its device "NVIDIA T4 with torch-2.11".
std::string_view device_name_of(const Trace& trace) {
    const std::string_view name = trace.text(trace.run().device_name);
    return name.substr(0, name.find(" with "));
}

std::string no_peaks_sentence(const Trace& trace) {
    const std::string_view name = device_name_of(trace);
    if (ran_on_gpu(trace)) {
        return fmt::format(
            "The peaks of {} are not known, so % of peak and MUE are empty: choose a GPU of the "
            "catalogue.",
            name.empty() ? std::string_view("the device") : name);
    }
    return "The times are of a CPU whose peaks are not known, so % of peak and MUE are "
           "empty: predict the step for a GPU, or calibrate this machine "
           "(docs/choose_gpu_and_batch.md).";
}

/// Why times and sums of a step are not to be taken as they are.
void add_notes_on_step(const Trace& trace, std::vector<std::string>& notes) {
    if (!why_out_of_memory(trace).empty()) {
        notes.emplace_back(
            "The step ran out of memory: what would have run after that is not counted.");
    }
    if (has_note(trace, kMachineBusy)) {
        notes.emplace_back(
            "The machine was busy: times are longer than the ops need. Capture the step again.");
    }
}

}  // namespace

const Gpu* gpu_of_trace(const Trace& trace, const std::vector<Gpu>& gpus) {
    const Id<Device> device = profiled_device(trace);
    const bool has_memory = ran_on_gpu(trace) && device.valid();
    return find_gpu_by_name(gpus, device_name_of(trace),
                            has_memory ? trace.devices.get<&Device::total_bytes>(device) : 0);
}

PeaksOfTrace peaks_of_trace(const Trace& trace, const std::vector<Gpu>& gpus, const Gpu* chosen) {
    const Gpu* const own = gpu_of_trace(trace, gpus);
    const Gpu* const card = chosen != nullptr ? chosen : own;
    PeaksOfTrace result;
    add_notes_on_step(trace, result.notes);
    if (card == nullptr) {
        result.notes.push_back(no_peaks_sentence(trace));
        return result;
    }
    result.peaks.gpu = card->id;
    result.peaks.name = card->name;
    result.peaks.bytes_per_s = card->bandwidth_bytes_per_s.value;
    const std::string_view precision_name = trace.text(trace.run().precision);
    const auto precision = models::parse_precision(precision_name);
    const auto type = precision ? matmul_type_of(*precision) : std::nullopt;
    if (type && card->peak(*type)) {
        result.peaks.flop_per_s = card->peak(*type)->value;
    } else {
        result.notes.push_back(fmt::format("{} has no peak for {}, so % of peak is empty.",
                                           card->name,
                                           precision ? precision_name : "an unknown precision"));
    }
    const bool is_same_kind = ran_on_gpu(trace) == card->compute_capability.has_value();
    result.fit_its_times = card == own || (own == nullptr && is_same_kind);
    const std::string_view device = device_name_of(trace);
    if (!result.fit_its_times) {
        result.notes.push_back(fmt::format(
            "The step ran on {}: its times say nothing about {}, so % of peak and MUE are empty.",
            device.empty() ? std::string_view("another device") : device, card->name));
    } else if (card != own) {
        result.notes.push_back(
            fmt::format("Times are of {}, peaks of {}.",
                        device.empty() ? std::string_view("another device") : device, card->name));
    }
    return result;
}

}  // namespace profiler
