#include "models/ops/devices.h"

#include <ATen/Parallel.h>

// at::parallel_for is a template that uses OpenMP's threads. Only this file is compiled with
// OpenMP; in other files it would be a plain loop on one thread.
#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace models::ops {

void parallel_ranges(int64_t count, int64_t granularity, int64_t grain, Range run) {
    const int64_t units = (count + granularity - 1) / granularity;
    const int64_t grain_units = std::max<int64_t>(1, grain / granularity);
    at::parallel_for(0, units, grain_units, [&](int64_t begin, int64_t end) {
        run(begin * granularity, std::min(end * granularity, count));
    });
}

}  // namespace models::ops
