#pragma once

#include "profiler/layouts/dimension_order.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// Which dimension orders let one strided batched GEMM compute a tensor contraction.
namespace profiler {

/// One operand of a strided batched GEMM: `batch` matrices.
struct GemmOperand {
    int64_t batch_stride = 0;  // 0: every product has the same matrix
    int64_t row_stride = 0;    // elements; one of the two strides is 1
    int64_t column_stride = 0;

    friend auto operator<=>(const GemmOperand&, const GemmOperand&) = default;
};

/// C[n] = A[n] B[n] for n below `batch`, with A [m, k], B [k, n], C [m, n]. Equal forms take equal
/// time.
struct GemmForm {
    int64_t batch = 1;
    int64_t m = 1, n = 1, k = 1;
    GemmOperand a, b, c;

    friend auto operator<=>(const GemmForm&, const GemmForm&) = default;
};

/// More matrices than that are so small that one product and a copy are far faster.
inline constexpr int64_t kMostSplitMatrices = 64;

/// The dimension orders of the three tensors of a contraction.
struct ContractionOrders {
    std::string_view a, b, c;
};

/// The forms in which one call computes C from A and B. A dimension is summed over if C does not
/// have it. Dimensions of rows, columns and sums must each lie side by side, in one order, so that
/// they act as one dimension. Dimensions that all three tensors have, and those of rows or columns
/// that do not lie beside the others, number the matrices of the batch; they too must act as one
/// dimension, and the latter make at most kMostSplitMatrices. Empty: no form. The form with the
/// fewest matrices comes first.
std::vector<GemmForm> gemm_forms(const ContractionOrders& orders, const DimensionSizes& sizes);

}  // namespace profiler
