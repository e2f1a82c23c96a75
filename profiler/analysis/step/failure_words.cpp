#include "profiler/analysis/step/failure_words.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace profiler {
namespace {

/// Whether a request for memory failed, not something else.
bool is_out_of_memory(const Trace& trace, const Failure& failure) {
    return failure.requested_bytes >= 0 ||
           trace.text(failure.error).find("OutOfMemory") != std::string_view::npos;
}

/// "train.py:14"; empty for none.
std::string line_of(const Trace& trace, Id<Frame> id) {
    if (!id.valid()) return {};
    const Frame frame = trace.frames[id];
    const std::string_view file = trace.text(frame.file);
    return fmt::format("{}:{}", file.substr(file.find_last_of("/\\") + 1), frame.line);
}

/// " at train.py:14"; without a line the module, else the op.
std::string where(const Trace& trace, const Failure& failure) {
    const FailurePlace place = place_of(trace, failure);
    for (const std::string_view name :
         {std::string_view(place.line), place.module_path, place.op}) {
        if (!name.empty()) return fmt::format(" at {}", name);
    }
    return {};
}

/// " in step 1", " before the first step", " after step 3". Nothing without steps, or where all of
/// the trace is taken for one.
std::string when(const Trace& trace, const Failure& failure) {
    if (has_note(trace, kInferredStep)) return {};
    if (failure.step.valid()) return fmt::format(" in step {}", failure.step.index() + 1);
    if (trace.steps.empty()) return {};
    std::size_t num_before = 0;
    for (const int64_t start_ns : trace.steps.column<&Step::start_ns>()) {
        num_before += start_ns <= failure.time_ns ? 1 : 0;
    }
    if (num_before == 0) return " before the first step";
    return fmt::format(" after step {}", num_before);
}

/// ": 5.59 GiB asked, 3.02 GiB free of 38.9 GiB", as far as it is known.
std::string amounts(const Failure& failure) {
    std::vector<std::string> parts;
    if (failure.requested_bytes >= 0) {
        parts.push_back(fmt::format("{} asked", format_bytes(failure.requested_bytes)));
    }
    if (failure.free_bytes >= 0) {
        parts.push_back(fmt::format("{} free", format_bytes(failure.free_bytes)));
        if (failure.limit_bytes > 0) parts.back() += " of " + format_bytes(failure.limit_bytes);
    }
    return parts.empty() ? std::string() : fmt::format(": {}", fmt::join(parts, ", "));
}

std::string_view consequence_of(FailureOutcome outcome) {
    switch (outcome) {
        case FailureOutcome::kEnded:
            return "";
        case FailureOutcome::kCaught:
            return " The program caught it.";
        case FailureOutcome::kAbsorbed:
            return " torch went on with less memory.";
    }
    return "";
}

}  // namespace

FailurePlace place_of(const Trace& trace, const Failure& failure) {
    FailurePlace place;
    const Id<Frame> frame = CallSites::program_frame_of(trace, failure.stack);
    place.line = line_of(trace, frame);
    if (frame.valid()) place.code = trace.text(trace.frames.get<&Frame::code>(frame));
    const Id<ModulePath> module =
        failure.module_path.valid() ? failure.module_path : module_of(trace, failure.op);
    if (module.valid()) place.module_path = path_of_module(trace, module);
    if (failure.op.valid()) place.op = name_of_call(trace, failure.op);
    return place;
}

Id<Failure> fatal_out_of_memory(const Trace& trace) {
    const Id<Failure> fatal = fatal_failure(trace);
    const bool ran_out = fatal.valid() && is_out_of_memory(trace, trace.failures[fatal]);
    return ran_out ? fatal : Id<Failure>();
}

bool ran_out_of_memory(const Trace& trace) {
    return has_note(trace, kRanOutOfMemory) || fatal_out_of_memory(trace).valid();
}

std::string failure_sentence(const Trace& trace, Id<Failure> id) {
    const Failure failure = trace.failures[id];
    const bool ran_out = is_out_of_memory(trace, failure);
    const bool ended = failure.outcome == FailureOutcome::kEnded;
    const std::string_view error = trace.text(failure.error);
    const Id<Device> device = failure.device;
    std::string text = "Out of memory";
    if (!ran_out) {
        text = fmt::format("{} {}", ended ? "The program ended with" : "There was",
                           error.empty() ? "an error" : error);
    } else if (device.valid() && device != profiled_device(trace)) {
        text += fmt::format(" on {}", trace.text(trace.devices.get<&Device::name>(device)));
    }
    text += where(trace, failure) + when(trace, failure);
    if (ran_out) text += amounts(failure);
    return printable(fmt::format("{}.{}", text, consequence_of(failure.outcome)));
}

std::string caught_sentence(const Trace& trace) {
    int64_t num_caught = 0;
    Id<Failure> last;
    for (const Id<Failure> id : trace.failures.ids()) {
        if (trace.failures.get<&Failure::outcome>(id) != FailureOutcome::kCaught) continue;
        ++num_caught;
        last = id;
    }
    if (num_caught == 0) return {};
    const std::string before =
        num_caught == 1 ? "" : fmt::format("{} errors were caught, the last: ", num_caught);
    return before + failure_sentence(trace, last);
}

}  // namespace profiler
