#include "profiler/planner/step/capacity_search.h"

#include "models/config/batch_bisection.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace profiler {
namespace {

/// The batch at which a line through two peaks meets the capacity: the peak of the fitting and the
/// peak of the failing batch. 0: a peak is not known.
int64_t guess_between(BatchInterpolation& interpolation, const MemoryOptions& options,
                      int64_t capacity_bytes, const models::BatchBisection& search) {
    const auto [good, bad] = std::pair(search.fits, search.fails);
    if (good == 0 || bad > interpolation.largest_valid_batch()) return 0;
    const auto low = interpolation.unlimited_memory(good, options);
    const auto high = interpolation.unlimited_memory(bad, options);
    if (!low || !high || high->peak_reserved_bytes <= low->peak_reserved_bytes) return 0;
    const auto share = static_cast<double>(capacity_bytes - low->peak_reserved_bytes) /
                       static_cast<double>(high->peak_reserved_bytes - low->peak_reserved_bytes);
    return good +
           static_cast<int64_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(bad - good));
}

/// Begins with what the peaks that are simulated already (for other GPUs) say about this capacity.
models::BatchBisection begin_search(BatchInterpolation& interpolation, const MemoryOptions& options,
                                    int64_t capacity_bytes) {
    models::BatchBisection search;
    for (const auto& [batch_size, peaks] : interpolation.known_peaks(options)) {
        if (peaks.peak_allocated_bytes > capacity_bytes) {
            search.answer(batch_size, false);
            break;
        }
        if (peaks.peak_reserved_bytes <= capacity_bytes) search.answer(batch_size, true);
    }
    search.stride = std::max(search.fits, interpolation.first_traced());
    return search;
}

/// Every batch up to here is tried.
constexpr int64_t kDenseBatches = 64;
/// Above, only multiples of this are tried: GEMMs are fastest on whole tiles.
constexpr int64_t kBatchStep = 8;

}  // namespace

models::Result<bool> fits(const StepMemory& unlimited, int64_t capacity_bytes,
                          const std::function<models::Result<StepMemory>()>& limited) {
    if (unlimited.peak_reserved_bytes <= capacity_bytes) return true;
    if (unlimited.peak_allocated_bytes > capacity_bytes) return false;
    const auto memory = limited();
    if (!memory) return tl::unexpected(memory.error());
    return !memory->out_of_memory;
}

models::Result<bool> fits_at(BatchInterpolation& interpolation, const MemoryOptions& options,
                             int64_t capacity_bytes, int64_t batch_size) {
    if (batch_size > interpolation.largest_valid_batch()) return false;
    const auto unlimited = interpolation.unlimited_memory(batch_size, options);
    if (!unlimited) return tl::unexpected(unlimited.error());
    return fits(*unlimited, capacity_bytes,
                [&] { return interpolation.limited_memory(batch_size, options, capacity_bytes); });
}

models::Result<int64_t> least_capacity_bytes(
    const StepMemory& unlimited, int64_t too_small_bytes,
    const std::function<models::Result<StepMemory>(int64_t limit_bytes)>& limited,
    int64_t precision_bytes) {
    int64_t bad = std::max(too_small_bytes, unlimited.peak_allocated_bytes - 1);
    int64_t good = std::max(unlimited.peak_reserved_bytes, bad + 1);
    while (good - bad > precision_bytes) {
        const int64_t middle = bad + (good - bad) / 2;
        const auto memory = limited(middle);
        if (!memory) return tl::unexpected(memory.error());
        (memory->out_of_memory ? bad : good) = middle;
    }
    return good;
}

models::Result<int64_t> least_capacity_bytes(BatchInterpolation& interpolation,
                                             const MemoryOptions& options, int64_t batch_size,
                                             int64_t too_small_bytes, int64_t precision_bytes) {
    const auto unlimited = interpolation.unlimited_memory(batch_size, options);
    if (!unlimited) return tl::unexpected(unlimited.error());
    const auto limited = [&](int64_t limit_bytes) {
        return interpolation.limited_memory(batch_size, options, limit_bytes);
    };
    return least_capacity_bytes(*unlimited, too_small_bytes, limited, precision_bytes);
}

models::Result<int64_t> find_max_batch(BatchInterpolation& interpolation,
                                       const MemoryOptions& options, int64_t capacity_bytes) {
    if (capacity_bytes <= 0) return 0;
    models::BatchBisection search = begin_search(interpolation, options, capacity_bytes);
    // Memory grows nearly linearly with the batch: interpolate a few times, then bisect.
    for (int guesses = 4; !search.is_done();) {
        int64_t guess = 0;
        if (search.fails > 0 && guesses-- > 0) {
            guess = guess_between(interpolation, options, capacity_bytes, search);
        }
        const int64_t batch_size = search.next(guess);
        const auto ok = fits_at(interpolation, options, capacity_bytes, batch_size);
        if (!ok) return tl::unexpected(ok.error());
        search.answer(batch_size, *ok);
    }
    return search.fits;
}

models::Result<int64_t> find_traced_max_batch(BatchInterpolation& interpolation,
                                              const MemoryOptions& options,
                                              int64_t capacity_bytes) {
    const auto guess = find_max_batch(interpolation, options, capacity_bytes);
    if (!guess) return guess;
    const auto fits_exactly = [&](int64_t batch_size) -> models::Result<bool> {
        if (batch_size > interpolation.largest_valid_batch()) return false;
        if (const auto ok = interpolation.trace_batch(batch_size); !ok) {
            return tl::unexpected(ok.error());
        }
        return fits_at(interpolation, options, capacity_bytes, batch_size);
    };
    // Nearly always both are needed. On any number of threads, so that plans do not depend on it.
    if (*guess > 0 && *guess < interpolation.largest_valid_batch()) {
        interpolation.trace_together({*guess, *guess + 1});
    }
    int64_t batch_size = *guess;
    while (batch_size > 0) {
        const auto ok = fits_exactly(batch_size);
        if (!ok) return tl::unexpected(ok.error());
        if (*ok) break;
        --batch_size;
    }
    while (batch_size >= *guess) {
        const auto ok = fits_exactly(batch_size + 1);
        if (!ok) return tl::unexpected(ok.error());
        if (!*ok) break;
        ++batch_size;
    }
    return batch_size;
}

std::string text_of_need(int64_t needed_bytes, const StepMemory& unlimited,
                         int64_t capacity_bytes) {
    const std::string needed = format_bytes(needed_bytes);
    if (unlimited.peak_allocated_bytes > capacity_bytes) {
        return fmt::format("{} for tensors", needed);
    }
    return fmt::format("{} for tensors and fragmentation ({} for tensors alone)", needed,
                       format_bytes(unlimited.peak_allocated_bytes));
}

std::vector<int64_t> batches_between(const std::vector<int64_t>& best,
                                     const std::vector<int64_t>& tried) {
    std::set<int64_t> batches;
    for (const int64_t batch_size : best) {
        const auto at = std::ranges::find(tried, batch_size);
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
