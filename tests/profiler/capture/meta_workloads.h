#pragma once

#include "models/config/workload.h"
#include "profiler/capture/meta_capture.h"

#include <string>

/// Small workloads of every model, and their MetaTraces.
namespace profiler::tests {

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

inline Trace meta_trace(const models::Workload& workload, const MetaTarget& target = {}) {
    Trace trace;
    capture_on_meta(workload, target, {}, trace);
    return trace;
}

}  // namespace profiler::tests
