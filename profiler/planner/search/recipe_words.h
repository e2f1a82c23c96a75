#pragma once

#include "models/config/workload.h"

#include <string>

/// A recipe in a sentence, in the words of the switches' tables.
namespace profiler {

struct TechniqueWords {
    std::string text;        // "regenerated masks in all layers and checkpointing in layer 3"
    bool is_plural = false;  // the verb after it: "save" or "saves"
};

/// The techniques that `chosen` uses and `reference` does not, with their layers; "nothing" if
/// there are none. Requires the same model in both, and one recipe for all layers of `reference`.
TechniqueWords describe_techniques(const models::Workload& chosen,
                                   const models::Workload& reference);

}  // namespace profiler
