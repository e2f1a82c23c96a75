#include "profiler/layouts/dimension_order.h"

#include <algorithm>

namespace profiler {

int64_t element_count(std::string_view dimensions, const DimensionSizes& sizes) {
    int64_t count = 1;
    for (const char dimension : dimensions) count *= sizes[dimension];
    return count;
}

int64_t stride_of(char dimension, std::string_view order, const DimensionSizes& sizes) {
    const std::size_t place = order.find(dimension);
    if (place == order.npos) return 0;
    return element_count(order.substr(place + 1), sizes);
}

std::vector<std::string> all_orders(std::string dimensions) {
    std::vector<std::string> orders;
    std::sort(dimensions.begin(), dimensions.end());
    do {
        orders.push_back(dimensions);
    } while (std::next_permutation(dimensions.begin(), dimensions.end()));
    return orders;
}

}  // namespace profiler
