#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace profiler {

/// What a program trains, as its trace shows it.
struct TrainedParameters {
    int64_t count = 0;
    int64_t num_elements = 0;
    int64_t num_gradients = 0;  // parameters that get one; 0: none, or not known
};

TrainedParameters trained_parameters_of(const Trace& trace);

/// "parameters (1,200,000 and 3,400,000)", "parameters with a gradient (6 of 6 and 2 of 6)".
std::vector<std::string> differences(const TrainedParameters& a, const TrainedParameters& b);

}  // namespace profiler
