#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The error of a predicted peak: which tensors the predicted and the measured step both hold at
/// their peaks, and what causes the rest of the difference.
namespace profiler {

enum class GapCause : uint8_t {
    kRounding,       // blocks are larger than their tensors
    kWorkspace,      // of libraries
    kFragmentation,  // reserved and not allocated
    kTemporary,      // freed before the next op
    kGradient,       // of parameters: kept between steps, or not yet computed at the peak
    kUnknown         // any other tensor that only one of the two holds
};
inline constexpr std::array<std::string_view, 6> kGapCauseNames{
    "rounding", "workspace", "fragmentation", "temporary", "gradient", "unknown"};

struct Gap {
    int64_t predicted_bytes = 0;
    int64_t measured_bytes = 0;
    int64_t difference_bytes() const { return predicted_bytes - measured_bytes; }
};

/// A tensor that only one step holds at its peak, or that the steps hold in different sizes.
struct UnmatchedTensor {
    bool is_predicted = false;
    Category category = Category::kUnknown;
    std::string name;  // of the tensor, else of the op that allocated it and the op's module
    int64_t size_bytes = 0;
};

struct PredictionError {
    bool of_reserved = false;     // totals are reserved bytes; else allocated (one has no segments)
    int64_t predicted_bytes = 0;  // the peak
    int64_t measured_bytes = 0;
    int64_t matched_bytes = 0;  // of tensors that both steps hold
    int64_t matched_count = 0;
    std::array<Gap, kGapCauseNames.size()>
        gaps{};                            // their differences add up to that of the totals
    std::vector<UnmatchedTensor> tensors;  // largest first
    std::string sentence;  // "predicted 13.9 GiB, measured 13.8 GiB: 0.7 % too much; workspace ..."

    const Gap& gap(GapCause cause) const { return gaps[static_cast<std::size_t>(cause)]; }
};

/// Matches tensors by name (or op and module) and size, and temporaries by size alone.
/// O(tensors live at the peaks). Errors: a trace without a recorded step; steps that differ in more
/// than the optimizer's implementation.
models::Result<PredictionError> explain_prediction_error(const Trace& predicted,
                                                         const Trace& measured);

}  // namespace profiler
