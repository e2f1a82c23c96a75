#pragma once

#include "profiler/analysis/advice/evidence.h"
#include "profiler/analysis/advice/explanation.h"
#include "profiler/analysis/advice/what_if.h"
#include "profiler/planner/data/planner_data.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

/// What to do about memory: a table of remedies, and combinations of them.
///
///     row           id, title, the finding that it answers, find
///     find          a case -> remedies with a change to paste and an estimate of the step with it
///     combination   up to three remedies, and one estimate of the step with all their changes
///
/// A remedy that nothing in the trace lets one estimate is not there.
namespace profiler {

/// What remedies are judged by.
struct RemedyCase {
    const Evidence& evidence;
    const WhatIf& steps;
    Conditions conditions;
    StepOutcome as_written;
    const PlannerData& data;
    const std::vector<GrowingLine>& growth;
    const Gpu* recorded_gpu = nullptr;  // null: on the CPU, or not in the catalogue
    int64_t largest_batch = -1;         // find_largest_batch
    /// The replay does not fail where the program did, so it cannot judge the allocator.
    bool contradicts_recording = false;
};

/// A remedy, and what it does to the step.
struct Candidate {
    Remedy remedy;
    Changes changes;
    std::optional<AllocatorSettings> settings;  // in the place of the recorded ones
};

struct RemedyRow {
    std::string_view id;
    std::string_view title;
    std::string_view finding;
    std::vector<Candidate> (*find)(const RemedyCase& which) = nullptr;
};

// The rows, by subject.
std::span<const RemedyRow> remedies_of_model();    // techniques: the loss, activations
std::span<const RemedyRow> remedies_of_program();  // lifetimes, the optimizer, validation, growth
std::span<const RemedyRow> remedies_of_target();   // the allocator, the batch, the GPU

/// All that save something, in the order of the table. At most a few replays of the step each.
std::vector<Candidate> find_remedies(const RemedyCase& which);

struct Combinations {
    std::vector<Remedy> best;
    bool were_tried = false;  // false: no two remedies go together, or none is needed
};

/// Where no remedy fits, or all that fit cost more time or code: the best one or two combinations
/// that do. At most 78 runs of the step, each up to two simulations, on all cores.
Combinations find_combinations(const RemedyCase& which, const std::vector<Candidate>& remedies);

/// Segments that grow, also where they win nothing alone. None: the program has them, or the replay
/// cannot judge settings.
std::optional<Candidate> growing_segments(const RemedyCase& which);

/// A remedy with its changes and its estimate.
Candidate estimated(const RemedyCase& which, Remedy remedy, Changes changes);

/// The step with changes. Its time is as recorded, and what the changes add.
StepOutcome outcome_of(const RemedyCase& which, const Changes& changes);

/// The line that puts a recipe into the model.
RemedyChange swap_change(std::string_view recipe);

/// Another batch or another GPU answers a question of its own.
bool keeps_target(const Remedy& remedy);

/// Whether memory fills from step to step, or from batch to batch of a validation that ran out.
bool has_growth(const RemedyCase& which);

/// The order of remedies: a smaller one is better. `saved_bytes` has to be known.
using RemedyRank = std::tuple<bool, bool, bool, bool, bool, int64_t, int64_t, int64_t>;
struct RankedBy {
    int64_t limit_bytes = -1;
    bool has_growth = false;

    RemedyRank operator()(const Remedy& remedy) const;
};

/// What PyTorch can reserve on a GPU. Errors: it does not run CUDA.
models::Result<int64_t> limit_on(const Gpu& gpu, const PlannerData& data);

/// The largest batch that fits, as written; -1: not known, 0: not even one sequence.
int64_t find_largest_batch(const RemedyCase& which);

}  // namespace profiler
