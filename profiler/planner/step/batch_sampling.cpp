#include "profiler/planner/step/batch_sampling.h"

#include <algorithm>
#include <set>

namespace profiler {
namespace {

/// Every batch up to here is tried.
constexpr int64_t kDenseBatches = 64;
/// Above, only multiples of this are tried: GEMMs are fastest on whole tiles.
constexpr int64_t kBatchStep = 8;

}  // namespace

std::vector<int64_t> batches_between(const std::vector<int64_t>& best,
                                     const std::vector<int64_t>& tried) {
    std::set<int64_t> batches;
    for (const int64_t batch_size : best) {
        const auto at = std::find(tried.begin(), tried.end(), batch_size);
        if (at == tried.end()) continue;
        const int64_t first = at == tried.begin() ? batch_size : *(at - 1);
        const int64_t last = at + 1 == tried.end() ? batch_size : *(at + 1);
        const int64_t stride = (last - first) / kDenseBatches + 1;  // 1 but for huge batches
        for (int64_t b = first + 1; b < last; b += stride) batches.insert(b);
    }
    for (const int64_t known : tried) batches.erase(known);
    return {batches.begin(), batches.end()};
}

std::vector<int64_t> sampled_batches(int64_t max_batch, bool dense) {
    std::set<int64_t> batches{max_batch};
    for (int64_t b = 1; b < max_batch; b *= 2) batches.insert(b);
    if (!dense) return {batches.begin(), batches.end()};
    for (int64_t b = 1; b <= std::min(max_batch, kDenseBatches); ++b) batches.insert(b);
    const int64_t rest = std::max<int64_t>(max_batch - kDenseBatches, 0);
    const int64_t step =
        std::max<int64_t>((rest / kDenseBatches + kBatchStep - 1) / kBatchStep, 1) * kBatchStep;
    for (int64_t b = kDenseBatches + step; b < max_batch; b += step) batches.insert(b);
    return {batches.begin(), batches.end()};
}

}  // namespace profiler
