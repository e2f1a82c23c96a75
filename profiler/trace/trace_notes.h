#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profiler {

/// Code of a diagnostic: the categories of `count` blocks are inferred, not recorded.
inline constexpr std::string_view kInferredCategories = "inferred_categories";
/// The file tells what blocks contain. If there is kInferredCategories, too, it does not tell all.
inline constexpr std::string_view kToldCategories = "told_categories";

/// Code of a diagnostic: kStartState of a device that is not the first, as "start_state of cuda:1".
/// The events of each device of a snapshot have numbers of their own.
inline constexpr std::string_view kStartStateOf = "start_state of ";

/// Code of a diagnostic: a snapshot shows what was allocated when it was taken, and nothing before.
inline constexpr std::string_view kNoHistory = "no_history";

/// Code of a diagnostic: the lines in call stacks are those at which functions begin.
inline constexpr std::string_view kLinesOfFunctions = "lines_of_functions";

/// Code of a diagnostic: the file marks no steps, so all of it stands as one.
inline constexpr std::string_view kInferredStep = "inferred_step";

/// Codes of diagnostics: the trace was joined from a memory snapshot and a profiler trace, or from
/// the profiler traces of several ranks.
inline constexpr std::string_view kJoined = "joined";
inline constexpr std::string_view kJoinedRanks = "joined_ranks";

/// Code of a diagnostic: step times are predicted, and may be off by `count` %. Older files say
/// kTimesNotCalibrated instead, and meant 20 %.
inline constexpr std::string_view kPredictedTimes = "predicted_times";

/// Code of a diagnostic: after the recorded steps the program took more memory than until then, at
/// its peak `count` bytes.
inline constexpr std::string_view kLaterPeak = "later_peak";

/// Code of a diagnostic: the steps train batches of different sizes or lengths.
inline constexpr std::string_view kBatchesDiffer = "batches_differ";

/// Whether a trace has a diagnostic with this code.
bool has_note(const Trace& trace, std::string_view code);

/// The first diagnostic with this code; none: the trace has none.
Id<Diagnostic> find_note(const Trace& trace, std::string_view code);

/// kLaterPeak; 0: as far as is known the peak lies in what was recorded.
int64_t later_peak_bytes(const Trace& trace);

/// 0.1 if predicted times may be off by 10 %; 0: they are measured, or the trace does not say.
double time_error_of(const Trace& trace);

bool is_joined(const Trace& trace);        // kJoined
bool is_joined_ranks(const Trace& trace);  // kJoinedRanks

/// "cuda:1 of rank 3" for a device or a thread of a trace of joined ranks.
std::string name_of_rank(std::string_view name, int64_t rank);
/// 3 of such a name; -1 for others.
int64_t rank_in(std::string_view name);

/// The ops of the rank that figures are of (run.rank), where ranks are joined; else all ops.
class OpsOfRank {
public:
    explicit OpsOfRank(const Trace& trace);
    bool contain(Id<Op> op) const {
        const Id<Thread> thread = trace_.ops.get<&Op::thread>(op);
        return is_of_rank_.empty() || !thread.valid() || is_of_rank_[thread.index()];
    }

private:
    const Trace& trace_;
    std::vector<bool> is_of_rank_;  // of each thread; empty: no ranks are joined
};

/// Number of events that rebuild what was there before the recording (kStartState), of the profiled
/// device or of another one. They are the first.
int64_t num_start_events(const Trace& trace);
int64_t num_start_events(const Trace& trace, Id<Device> device);

/// Whether events of a device have the numbers of steps and phases: the profiled device, and all of
/// a profiler's file, which numbers their events together.
bool has_numbers_of_phases(const Trace& trace, Id<Device> device);

/// The most frames of one call stack that readers keep and writers write.
inline constexpr std::size_t kMostStackFrames = 256;

/// A snapshot names the user's metadata and the compiled graph of an allocation beside its frames.
/// Here they are the innermost frames: the function is the text, the file one of these. So they are
/// found and written as frames are, and stacks that differ in nothing else share all other rows.
inline constexpr std::string_view kUserMetadataFile = "<user_metadata>";
inline constexpr std::string_view kCompileContextFile = "<compile_context>";
constexpr bool is_mark_file(std::string_view file) {
    return file == kUserMetadataFile || file == kCompileContextFile;
}

// What readers say of files that hold less than a capture does.
inline constexpr std::string_view kRecordedByTorch = "recorded_by_torch";  // no recorder for it

/// Whether a trace holds an allocator's actions and no ops, as a memory snapshot does.
bool is_memory_only(const Trace& trace);

/// Notes that a trace has memory but no ops (kAllocationsOnly), and what follows from that.
void note_allocations_only(Trace& trace);

/// Notes that there are other devices with memory, and how to choose one.
void note_other_devices(Trace& trace);

}  // namespace profiler
