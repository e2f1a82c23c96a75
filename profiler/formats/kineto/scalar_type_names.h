#pragma once

#include "profiler/trace/element_bytes.h"
#include "profiler/trace/trace.h"

#include <array>
#include <string_view>

namespace profiler {

/// Names of scalar types in profiler traces, which are those of c10. By DType.
inline constexpr std::array<std::string_view, kDTypeNames.size()> kScalarTypeNames{
    "Float", "Half",  "BFloat16", "Double", "Bool",     "Byte",
    "Char",  "Short", "Int",      "Long",   "Undefined"};

constexpr DType dtype_of_scalar_type(std::string_view name) {
    for (std::size_t i = 0; i < kScalarTypeNames.size(); ++i) {
        if (kScalarTypeNames[i] == name) return static_cast<DType>(i);
    }
    return DType::kOther;
}
static_assert(dtype_of_scalar_type("Long") == DType::kInt64 &&
              dtype_of_scalar_type("Float8_e4m3fn") == DType::kOther);

/// Bytes of one element, also of types that DType does not have; 0: not known.
constexpr int64_t element_bytes_of_scalar_type(std::string_view name) {
    if (name.starts_with("Float8")) return 1;
    if (name == "ComplexHalf") return 4;
    if (name == "ComplexFloat") return 8;
    if (name == "ComplexDouble") return 16;
    return element_bytes(dtype_of_scalar_type(name));
}

}  // namespace profiler
