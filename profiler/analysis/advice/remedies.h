#pragma once

#include "profiler/analysis/advice/evidence.h"
#include "profiler/analysis/advice/explanation.h"
#include "profiler/analysis/advice/what_if.h"
#include "profiler/planner/data/planner_data.h"

#include <span>
#include <string_view>
#include <vector>

/// What to do about memory: a table of remedies.
///
///     row    id, title, the finding that it answers, find
///     find   a case -> remedies with a change to paste and an estimate of the step with it
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
    int64_t largest_batch = -1;  // find_largest_batch
    /// The replay does not fail where the program did, so it cannot judge the allocator.
    bool contradicts_recording = false;
};

struct RemedyRow {
    std::string_view id;
    std::string_view title;
    std::string_view finding;
    std::vector<Remedy> (*find)(const RemedyCase& which) = nullptr;
};

// The rows, by subject.
std::span<const RemedyRow> remedies_of_model();    // techniques: the loss, activations
std::span<const RemedyRow> remedies_of_program();  // lifetimes, the optimizer, validation, growth
std::span<const RemedyRow> remedies_of_target();   // the allocator, the batch, the GPU

/// All that save something, in the order of the table. At most a few replays of the step each.
std::vector<Remedy> find_remedies(const RemedyCase& which);

/// The step with changes. Its time is as recorded, and what the changes add.
StepOutcome outcome_of(const RemedyCase& which, const Changes& changes);

/// What PyTorch can reserve on a GPU. Errors: it does not run CUDA.
models::Result<int64_t> limit_on(const Gpu& gpu, const PlannerData& data);

/// The largest batch that fits, as written; -1: not known, 0: not even one sequence.
int64_t find_largest_batch(const RemedyCase& which);

}  // namespace profiler
