#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Tensors whose dimensions have letters, and the orders in which memory may hold them.
///
///     b  sequence of the batch       h  head                 i  hidden element
///     j  token                       p  element of a head    u  element of the MLP
///     k  token that is attended to   c  query, key or value
///
/// An order is a text: "bhjk" holds the elements of the same b, h and j side by side. The letters
/// are those of Ivanov et al. (arXiv 2007.00072) and of their code, Substation.
namespace profiler {

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

}  // namespace profiler
