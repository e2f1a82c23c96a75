#pragma once

#include <cstdint>
#include <vector>

/// Which batches a search for the best throughput tries. Throughput rises and falls with whole
/// tiles and waves of the GEMMs, so neighbouring batches differ.
namespace profiler {

/// The batches of the first pass: every batch up to 64, every 8th or fewer above, and `max_batch`.
/// Without `dense` only powers of two and `max_batch`: for workloads in which each batch costs a
/// trace.
std::vector<int64_t> sampled_batches(int64_t max_batch, bool dense);

/// The batches of the second pass: those between each of `best` and its neighbours in `tried`
/// (rising), at most 64 on each side.
std::vector<int64_t> batches_between(const std::vector<int64_t>& best,
                                     const std::vector<int64_t>& tried);

}  // namespace profiler
