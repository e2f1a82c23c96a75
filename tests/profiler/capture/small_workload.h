#pragma once

#include "models/config/workload.h"

#include <string>

namespace profiler::tests {

/// Two layers of BERT that train in no time.
inline models::Workload small(const std::string& recipe = "original") {
    models::Workload w{.model = *models::find_model("bert-base"),
                       .head = models::Head::kMlm,
                       .recipe_name = recipe,
                       .recipe = *models::parse_recipe(recipe),
                       .batch_size = 2,
                       .seq_len = 24};
    w.model.hidden_size = 64;
    w.model.num_heads = 4;
    w.model.num_layers = 2;
    w.model.intermediate_size = 256;
    w.model.vocab_size = 211;
    return w;
}

}  // namespace profiler::tests
