#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What a trace of a user's own program says about it.
namespace profiler {

/// Empty and 0: not known.
struct RecordedProgram {
    std::string program;    // "train.py"
    std::string model;      // class of the model: "BertForMaskedLM"
    std::string precision;  // "fp32", "amp-bf16"
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t world_size = 1;

    friend bool operator==(const RecordedProgram&, const RecordedProgram&) = default;
};

/// Nullopt: the trace is not of such a program.
std::optional<RecordedProgram> program_of(const Trace& trace);

/// "train.py: BertForMaskedLM, B=4 S=128, fp32", as far as it is known.
std::string describe(const RecordedProgram& program);

/// What differs between the steps of two programs, each as "batch size (8 and 16)". Empty exactly
/// when they are equal.
std::vector<std::string> differences(const RecordedProgram& a, const RecordedProgram& b);

}  // namespace profiler
