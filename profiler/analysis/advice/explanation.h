#pragma once

#include "profiler/allocator/recorded_segments.h"
#include "profiler/analysis/step/growth.h"
#include "profiler/trace/trace.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The answer to "what fills the GPU, what is unusual, and what can I do about it?": what `explain`
/// prints, and what the window shows. Texts are of the program's files and already printable.
/// -1 stands for "not known" in every number.
namespace profiler {

enum class Verdict : uint8_t { kOutOfMemory, kGrows, kNearLimit, kFits };
inline constexpr std::string_view kVerdictNames[] = {"out_of_memory", "grows", "near_limit",
                                                     "fits"};

/// The GPU and the step that remedies are judged by.
struct ExplainTarget {
    std::string gpu;           // "a100-40gb"; empty: the one that was recorded
    int64_t limit_bytes = -1;  // what the allocator may reserve on it
    int64_t batch_size = -1;   // of a step

    friend bool operator==(const ExplainTarget&, const ExplainTarget&) = default;
};

/// The request that failed. Bytes as in profiler::Failure.
struct FailureFacts {
    Id<Failure> failure;
    std::string line;  // "train_oom.py:15"; empty: not known
    std::string code;  // the text of that line
    std::string module;
    std::string op;
    CachedPieces cached;
};

/// What fills the memory, from one point of view. Largest first.
struct Share {
    std::string name;  // "train_oom.py:13 <module>", "encoder.layers.3", "activation"
    std::string code;  // of a line
    int64_t size_bytes = 0;

    /// "train_oom.py:13": the name without its function.
    std::string place() const { return name.substr(0, name.find(' ')); }
};

struct MemoryFacts {
    int64_t event = -1;  // the moment: of the failure, else of the peak
    int64_t allocated_bytes = 0;
    int64_t reserved_bytes = 0;
    std::vector<Share> by_line, by_module, by_category;
};

/// Something unusual, decidable from the trace.
struct Finding {
    std::string_view id;  // "fragmentation": of the table of rules
    std::string sentence;
    int64_t size_bytes = -1;
    std::vector<Id<Allocation>> evidence;
};

/// What the user pastes, and where.
struct RemedyChange {
    enum class Kind : uint8_t {
        kSetting,  // a variable of the environment: "PYTORCH_CUDA_ALLOC_CONF=..."
        kApply,    // a technique for the model: `temposcope run --apply`, temposcope.swap
        kEdit,     // lines of the program
        kBatch,    // another batch size
        kCard,     // another GPU
        kSeveral   // of a combination: its parts
    };
    Kind kind = Kind::kSetting;
    // To paste: the variable, the lines of code, the name of the GPU. Of a combination: a line or
    // more of each part, in their order.
    std::string text;
    std::string name;  // of kApply: the recipe; of kSetting: the settings alone; of kCard: the GPU
    // Of kEdit: `text` goes in after this line, with its indentation. 0: only people can place it.
    std::string file;
    int64_t line = 0;
};

/// A step after a change. It is estimated from the trace, or measured by running it.
struct StepOutcome {
    int64_t peak_allocated_bytes = -1;
    int64_t peak_reserved_bytes = -1;
    int64_t step_time_ns = -1;
    int64_t added_time_ns = 0;  // by the change; known also where no step was timed
    bool fits = false;
    /// False: it does not fail where the program did, and nobody knows the rest of the step.
    bool is_sure = true;

    friend bool operator==(const StepOutcome&, const StepOutcome&) = default;
};

struct Remedy {
    std::string id;  // "expandable_segments"; of a combination: its members with "+" between them
    std::string title;         // "Let segments grow"
    std::string sentence;      // why it helps, and what it costs
    std::string_view finding;  // the finding that it answers
    RemedyChange change;
    /// Of a combination, else empty: ids, and what to paste, in this order. Techniques for the
    /// model are one part, because a second swap undoes the first.
    std::vector<std::string> members;
    std::vector<RemedyChange> parts;
    int64_t code_lines = 0;  // that the user writes
    StepOutcome estimated;
    std::optional<StepOutcome> verified;
    int64_t saved_bytes = 0;  // of the peak as written; order_remedies() sets it
    std::string problem;      // why it could not be verified; empty: it was, or nobody tried

    const StepOutcome& outcome() const { return verified ? *verified : estimated; }
    /// Whether a run of the program can show it. The batch size stands in the program, and so do
    /// lines whose place nobody knows.
    bool can_be_run() const {
        return std::ranges::all_of(changes(), [](const RemedyChange& one) {
            return one.kind != RemedyChange::Kind::kBatch &&
                   (one.kind != RemedyChange::Kind::kEdit || one.line > 0);
        });
    }
    /// All that is to be pasted: one change, or the parts of a combination.
    std::span<const RemedyChange> changes() const {
        return parts.empty() ? std::span(&change, 1) : std::span(parts);
    }
};

struct Explanation {
    Verdict verdict = Verdict::kFits;
    std::string sentence;
    std::optional<FailureFacts> failure;
    MemoryFacts memory;
    StepOutcome as_written;     // on the target, with the request that failed
    int64_t step_time_ns = -1;  // as recorded
    std::vector<GrowingLine> growth;
    std::vector<Finding> findings;
    std::vector<Remedy> remedies;  // best first: order_remedies()
    ExplainTarget target;
    int64_t largest_batch = -1;  // as recorded, on the target
    std::string unknown_rest;    // what the trace does not tell of the step; empty: it tells all
    std::vector<std::string> notes;
};

/// A step that leaves less of the limit may not fit in the next run.
inline constexpr double kLeastShareLeft = 0.02;
/// Whether the step fits and leaves at least kLeastShareLeft of the limit. A limit of -1 is none.
bool fits_well(const StepOutcome& outcome, int64_t limit_bytes);

/// Best first: fits with at least 2 % left, then ends what grows, then keeps batch and GPU, then
/// least code, then least time, then most bytes. Call it again when outcomes have changed.
void order_remedies(Explanation& explanation);

}  // namespace profiler
