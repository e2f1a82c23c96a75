#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which dimension orders let one strided batched GEMM compute a tensor contraction.
namespace profiler {

// Tensors whose dimensions have letters, and the orders in which memory may hold them.
//
//     b  sequence of the batch       h  head                 i  hidden element
//     j  token                       p  element of a head    u  element of the MLP
//     k  token that is attended to   c  query, key or value
//
// An order is a text: "bhjk" holds the elements of the same b, h and j side by side. The letters
// are those of Ivanov et al. (arXiv 2007.00072) and of their code, Substation.

class DimensionSizes {
public:
    void set(char dimension, int64_t size) { sizes_[index(dimension)] = size; }
    int64_t operator[](char dimension) const { return sizes_[index(dimension)]; }

private:
    static std::size_t index(char dimension) { return static_cast<std::size_t>(dimension - 'a'); }
    std::array<int64_t, 26> sizes_{};
};

/// Elements of a tensor with these dimensions.
int64_t element_count(std::string_view dimensions, const DimensionSizes& sizes);

/// Elements between neighbours along `dimension`; 0 if the order does not have it.
int64_t stride_of(char dimension, std::string_view order, const DimensionSizes& sizes);

/// Every order of these dimensions, sorted.
std::vector<std::string> all_orders(std::string dimensions);

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
/// they act as one dimension. The other dimensions number the matrices of the batch, and must act
/// as one dimension too: those that all three tensors have, and those of rows or columns that lie
/// apart from the others. The latter make at most kMostSplitMatrices. Empty: no form. The form with
/// the fewest matrices comes first.
std::vector<GemmForm> gemm_forms(const ContractionOrders& orders, const DimensionSizes& sizes);

}  // namespace profiler
