#pragma once

#include "models/config/parallel.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What a trace of a user's own program says about it, or of one that spreads a built-in model.
namespace profiler {

/// A built-in model over many GPUs (capture --parallel).
struct SpreadStep {
    models::Workload workload;  // of one GPU
    models::Parallel parallel;
};

/// Empty and 0: not known.
struct RecordedProgram {
    std::string program;    // "train.py"
    std::string model;      // class of the model: "BertForMaskedLM"
    std::string precision;  // "fp32", "amp-bf16"
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t micro_batches = 0;  // of a step, each of batch_size
    int64_t world_size = 1;
    std::optional<SpreadStep> spread;  // none: a program of the user's
};

/// Nullopt: the trace is not of such a program.
std::optional<RecordedProgram> program_of(const Trace& trace);

/// Sequences that a step trains: of this process, and of a built-in model on all GPUs together. 0:
/// not known.
int64_t sequences_per_step(const RecordedProgram& program);

/// Sequences of so many micro-batches. 0: not known, or more than a file can truly say.
int64_t sequences_of(int64_t batch_size, int64_t micro_batches);

/// "train.py: BertForMaskedLM, 4 micro-batches of B=8 S=128, fp32", as far as it is known.
std::string describe(const RecordedProgram& program);
/// "fsdp2"; empty: no built-in model over many GPUs.
std::string strategy_of(const RecordedProgram& program);
/// "fsdp2 on 8 GPUs"; empty likewise.
std::string describe_spread(const RecordedProgram& program);

/// What differs between the steps of two programs, each as "batch size (8 and 16)". Empty exactly
/// when they train the same step; recipes and strategies do it in ways of their own.
std::vector<std::string> differences(const RecordedProgram& a, const RecordedProgram& b);

}  // namespace profiler
