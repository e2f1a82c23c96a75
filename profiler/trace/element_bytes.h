#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>

namespace profiler {

/// Bytes of one element; 0 for kOther: not known.
constexpr int64_t element_bytes(DType dtype) {
    // By DType, in the order of kDTypeNames.
    constexpr std::array<int64_t, kDTypeNames.size()> kBytes{4, 2, 2, 8, 1, 1, 1, 2, 4, 8, 0};
    return kBytes[static_cast<std::size_t>(dtype)];
}
static_assert(element_bytes(DType::kInt64) == 8 && element_bytes(DType::kBFloat16) == 2);

}  // namespace profiler
