#pragma once

#include "models/config/workload.h"

#include <string>

/// A recipe in a sentence, in the words of the switches' tables.
namespace profiler {

/// The techniques that `chosen` uses and `reference` does not, with their layers: "regenerated
/// masks in all layers; checkpointing in layer 3". "nothing" if there are none. Requires the same
/// model in both, and one recipe for all layers of `reference`.
std::string describe_techniques(const models::Workload& chosen, const models::Workload& reference);

}  // namespace profiler
