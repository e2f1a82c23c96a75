#pragma once

#include "models/config/compute_capability.h"
#include "models/config/result.h"
#include "models/config/workload.h"

/// Whether a workload can exist, and where it can run. Each function returns the first problem it
/// finds, in one sentence.
namespace models {

/// The workload can exist: sizes are positive, heads divide the hidden size, the sequence fits the
/// model's positions, no tensor has more than 2^31 elements, probabilities are in [0, 1], the model
/// has the head, and the values of the recipe's switches go together.
Result<void> validate(const Workload& workload);

/// Also, the CPU runs it.
Result<void> validate_for_cpu(const Workload& workload);

/// Also, torch's CUDA kernels take its precision, sizes and attention on a GPU of this generation.
Result<void> validate_for_cuda(const Workload& workload, ComputeCapability capability);

/// As validate_for_cuda, but for a GPU that is predicted: also what is predicted and never run.
Result<void> validate_for_prediction(const Workload& workload, ComputeCapability capability);

}  // namespace models
