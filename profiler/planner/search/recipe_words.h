#pragma once

#include "models/config/workload.h"

#include <string>

/// Recipes as people speak of them.
namespace profiler {

struct TechniqueWords {
    std::string text;        // "regenerated masks in all layers and checkpointing in layer 3"
    bool is_plural = false;  // of its verb
};

/// What `chosen` does that `reference` does not; "nothing" where they are the same. Both train the
/// same model, and the reference's layers are all alike.
TechniqueWords describe_techniques(const models::Workload& chosen,
                                   const models::Workload& reference);

}  // namespace profiler
