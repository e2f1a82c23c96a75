#pragma once

#include "profiler/allocator/simulation.h"
#include "profiler/analysis/advice/evidence.h"
#include "profiler/analysis/step/event_order.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

/// A step with some of its blocks changed, replayed through the allocator: what a remedy saves, and
/// whether the step then fits.
///
///     recorded    first step          | step that fails ... X  the request that failed
///     replayed    first step, changed | step, changed ....  X  rest, as the first step went on
///
/// A step does what the steps before it did, so a change of a block changes its twins in all other
/// steps: the i-th block of a size and a line is the twin of the i-th block of that size and line.
/// A validation, which not every step has, is counted apart.
namespace profiler {

/// A block of the program, or the request that failed.
struct ProgramBlock {
    static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

    Id<Allocation> row;  // none: of the request that failed
    int64_t size_bytes = 0;
    int64_t stream = 0;
    int64_t pool = 0;
    bool is_of_inference = false;  // made by a forward without training: a validation, a teacher
    // Numbers of events. Behind a failure they are those of the rest of the step.
    int64_t alloc_event = 0;
    int64_t free_event = kNever;
    uint32_t twin = kNone;  // in the step that is explained; its own number in that step
};

/// What a remedy does to a step.
struct Changes {
    struct Change {
        double scale = 1;  // of its bytes; 0: it is never made
        std::optional<int64_t> free_event;
    };
    struct Added {
        int64_t size_bytes = 0;
        int64_t alloc_event = 0;  // right after this event
        int64_t free_event = ProgramBlock::kNever;
    };
    std::unordered_map<uint32_t, Change> of_block;
    std::vector<Added> added;  // to each step
    int64_t added_ns = 0;      // to the time of a step
    /// Bytes that the part of the step that nobody recorded needs beside what is there at the
    /// failure: a layer that is computed again.
    int64_t later_bytes = 0;

    bool empty() const { return of_block.empty() && added.empty(); }
};

/// On what a step is judged.
struct Conditions {
    AllocatorSettings settings;
    std::optional<int64_t> limit_bytes;
    double batch_factor = 1;  // of the recorded batch
};

class WhatIf {
public:
    /// Borrows the evidence, which must outlive it.
    explicit WhatIf(const Evidence& evidence);

    const std::vector<ProgramBlock>& blocks() const { return blocks_; }
    const ProgramBlock& block(uint32_t number) const { return blocks_[number]; }
    /// Of the step that is explained, in the order of allocation; the request that failed and the
    /// rest of its step too.
    const std::vector<uint32_t>& step_blocks() const { return step_blocks_; }
    /// kNone: of another device.
    uint32_t block_of(Id<Allocation> row) const { return number_of_row_[row.index()]; }
    /// The request that failed; kNone: there is none.
    uint32_t failed() const { return failed_; }

    /// The number of the last allocation before the end of an op: what is freed there is freed
    /// right after. In modelled times the next op may allocate at that same time.
    int64_t event_at_end_of(Id<Op> op) const;
    int64_t step_begin() const { return step_.first_event; }

    /// What is not known of the time after the failure, as a sentence. Empty: an earlier step tells
    /// all, or there is no failure.
    const std::string& unknown_rest() const { return unknown_rest_; }
    StepOutcome run(const Changes& changes, const Conditions& conditions) const;
    /// Whether all requests are served, in half the time of `run`.
    bool serves_all(const Changes& changes, const Conditions& conditions) const;

private:
    static constexpr int64_t kNever = ProgramBlock::kNever;
    static constexpr uint32_t kNone = ProgramBlock::kNone;

    struct Request {
        int64_t event = 0;
        uint32_t block = 0;
        bool is_free = false;
    };
    /// Another step: the twins of step_blocks_, by their places.
    using Twins = std::vector<uint32_t>;
    struct Window {
        int64_t first_event = 0;
        int64_t last_event = ProgramBlock::kNever;
        bool has(int64_t event) const { return first_event <= event && event < last_event; }
    };
    struct ChangedStream {
        RequestStream requests;
        std::size_t first_measured = 0;
        int64_t live_bytes = 0;  // at the end
    };
    struct Likeness;
    class StreamBuilder;

    void find_steps();
    void add_blocks(const PhasesByEvent& phases);
    void add_start_and_failed();
    void add_rest();
    bool is_same_place(const Window& earlier, uint32_t twin) const;
    void add_rest_like(const Window& earlier, const Twins& twins);
    void find_sizes_of_parameters();
    void bound_rest();
    bool follows_batch(const ProgramBlock& block, const PhasesByEvent& phases) const;
    std::vector<uint32_t> blocks_in(const Window& window) const;
    Likeness likeness_of(uint32_t number) const;
    Twins twins_in(const Window& window) const;
    int64_t event_in(const Twins& step, int64_t event) const;
    std::vector<Request> recorded_requests() const;
    std::vector<Request> moved_requests(const Changes& changes) const;
    ChangedStream changed_stream(const Changes& changes, double batch_factor) const;

    const Evidence& evidence_;
    Window step_;                 // that is explained
    std::vector<Window> others_;  // all other steps that the blocks are of
    std::vector<Twins> twins_;    // of each
    std::vector<ProgramBlock> blocks_;
    std::vector<uint32_t> number_of_row_;
    std::vector<uint32_t> recorded_;  // numbers of recorded blocks, in order of allocation
    AllocatorStart start_;            // its allocations are numbers of blocks_
    std::vector<uint32_t> step_blocks_;
    std::vector<bool> follows_batch_;       // by block
    std::vector<int64_t> parameter_bytes_;  // sorted sizes of parameters, and of copies in 16 bits
    std::vector<Request> requests_;         // as recorded, in order
    uint32_t failed_ = ProgramBlock::kNone;
    std::string unknown_rest_;
    int64_t rest_bytes_ = -1;   // the most that an unknown rest allocates; -1: nobody knows
    int64_t unborn_bytes_ = 0;  // optimizer state that comes at the end of the first step
};

}  // namespace profiler
