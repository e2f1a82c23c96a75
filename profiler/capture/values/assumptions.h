#pragma once

#include "models/config/routing.h"
#include "profiler/capture/values/op_traits.h"

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <span>

/// What stands for results that only trained weights decide. Each time it is used is counted
/// (value_reads.h).
namespace profiler {

/// What an op's result will be taken for. The inputs tell it, and are gone when the op ends.
struct Assumed {
    Assumption what = Assumption::kNone;
    int64_t dim = -1;
    int64_t width = 0;       // of that dimension: the op chooses among so many
    bool is_router = false;  // topk, by which a mixture chooses experts
    bool is_true = false;
};

/// None: the op's result is unknown.
std::optional<Assumed> assumption_for(const OpTraits& op, std::span<const c10::IValue> inputs);
/// Gives the outputs, which are unknown, the values that are assumed.
void assume(const Assumed& assumed, std::span<const c10::IValue> outputs,
            const models::Routing& routing);

}  // namespace profiler
