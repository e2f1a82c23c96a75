#pragma once

#include "models/config/workload.h"

#include <string>

namespace profiler::tests {

/// A model of any name, in the size of a test.
inline models::Workload small_workload(const std::string& model, const std::string& recipe,
                                       models::Head head = models::Head::kLayers,
                                       models::Precision precision = models::Precision::kFp32) {
    models::Workload w{.model = *models::find_model(model),
                       .head = head,
                       .recipe_name = recipe,
                       .recipe = *models::parse_recipe(recipe),
                       .precision = precision,
                       .batch_size = 2,
                       .seq_len = 48};
    w.model.hidden_size = 64;
    w.model.num_heads = 4;
    w.model.num_layers = 3;
    w.model.intermediate_size = 256;
    w.model.vocab_size = 211;
    return w;
}

/// Two layers of BERT that train in no time.
inline models::Workload small(const std::string& recipe = "original") {
    models::Workload w = small_workload("bert-base", recipe, models::Head::kMlm);
    w.seq_len = 24;
    w.model.num_layers = 2;
    return w;
}

}  // namespace profiler::tests
