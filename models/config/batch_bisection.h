#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

/// The search for the largest batch that fits. It says which batch to try next; the caller tries it
/// and answers whether it fits:
///
///     BatchBisection search;
///     while (!search.is_done()) {
///         const int64_t batch_size = search.next();
///         search.answer(batch_size, fits(batch_size));
///     }
///
/// From nothing it tries 1, 2, 4, ... until a batch fails, then the middle between the largest that
/// fits and the smallest that fails.
namespace models {

struct BatchBisection {
    int64_t fits = 0;    // the largest batch that is known to fit
    int64_t fails = 0;   // the smallest batch above it that is known to fail; 0: none is known
    int64_t stride = 1;  // from the largest batch that fits up to the next one, while none fails
    int64_t most = std::numeric_limits<int64_t>::max();  // no larger batch is tried

    bool is_done() const { return fails > 0 ? fails - fits <= 1 : fits >= most; }

    /// `guess` is a batch that is likelier to be the largest one than the middle; 0: none. While no
    /// batch fails, a guess only makes the stride longer.
    int64_t next(int64_t guess = 0) {
        if (fails > 0) {
            return guess == 0 ? fits + (fails - fits) / 2 : std::clamp(guess, fits + 1, fails - 1);
        }
        const int64_t step = std::exchange(stride, fits > 0 ? 2 * stride : stride);
        return std::min(std::max(fits + step, guess), most);
    }

    /// Also for batches that `next` did not name. Where memory is broken into pieces, a batch may
    /// fit above one that fails: the largest that fits counts.
    void answer(int64_t batch_size, bool batch_fits) {
        if (batch_fits && batch_size > fits) {
            if (batch_size > fails) fails = 0;
            fits = batch_size;
        } else if (!batch_fits && batch_size > fits && (fails == 0 || batch_size < fails)) {
            fails = batch_size;
        }
    }
};

}  // namespace models
