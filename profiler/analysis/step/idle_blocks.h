#pragma once

#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>

/// Parameters, gradients and optimizer states that no recorded op uses: of models that train at
/// another time, or never run.
namespace profiler {

struct IdleBytes {
    CategoryBytes by_category{};
    int64_t total_bytes = 0;
};

/// Of what lives at the peak. None: the trace does not tell what its ops use, or it has kernels
/// that no op of torch launched, as those of compiled code.
std::optional<IdleBytes> idle_at_peak(const Trace& trace, const PeakReport& peak);

/// "The recorded steps do not use 4.02 GiB of what lives at the peak: parameter 2.01 GiB, ...".
/// There must be some.
std::string idle_sentence(const IdleBytes& idle);

}  // namespace profiler
