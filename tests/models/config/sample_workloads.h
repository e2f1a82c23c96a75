#pragma once

#include "models/config/workload.h"

/// The workload that tests of models/config begin with.
namespace tests {

inline models::Workload bert_large() { return {.model = *models::find_model("bert-large")}; }

}  // namespace tests
