#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A predicted step beside the measured one: what of the peak both hold, tensor by tensor, and
/// where the rest of the difference lies.
namespace profiler {

enum class GapCause : uint8_t {
    kRounding,       // blocks are larger than their tensors
    kWorkspace,      // of libraries
    kFragmentation,  // reserved and not allocated
    kTemporary,      // freed before the next op
    kGradient,       // of parameters: kept between steps, or not yet there in the peak's phase
    kUnknown         // any other tensor that only one of the two holds
};
inline constexpr std::array<std::string_view, 6> kGapCauseNames{
    "rounding", "workspace", "fragmentation", "temporary", "gradient", "unknown"};

struct Gap {
    int64_t predicted_bytes = 0;
    int64_t measured_bytes = 0;
    int64_t difference_bytes() const { return predicted_bytes - measured_bytes; }
};

/// One that only one of the steps holds at its peak, or the other in another size.
struct UnmatchedTensor {
    bool is_predicted = false;
    Category category = Category::kUnknown;
    std::string name;  // its own, else the op that asked for it and where
    int64_t size_bytes = 0;
};

struct PredictionError {
    bool of_reserved = false;     // totals are reserved bytes; else allocated: one has no segments
    int64_t predicted_bytes = 0;  // at most
    int64_t measured_bytes = 0;
    int64_t matched_bytes = 0;  // of tensors that both hold
    int64_t matched_count = 0;
    std::array<Gap, kGapCauseNames.size()> gaps{};  // their differences sum up to the totals'
    std::vector<UnmatchedTensor> tensors;           // largest first
    std::string sentence;  // "predicted 13.9 GiB, measured 13.8 GiB: 0.7 % too much; workspace ..."

    const Gap& gap(GapCause cause) const { return gaps[static_cast<std::size_t>(cause)]; }
};

/// Tensors are equal when name (or op and module) and size are, temporaries when their size is.
/// O(tensors live at the peaks).
/// Errors: a trace without a recorded step; steps that differ in more than the optimizer's form.
models::Result<PredictionError> explain_prediction_error(const Trace& predicted,
                                                         const Trace& measured);

}  // namespace profiler
