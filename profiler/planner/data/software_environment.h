#pragma once

#include "models/config/recipe.h"
#include "models/config/result.h"
#include "profiler/planner/data/figures.h"
#include "profiler/planner/data/gpu.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a plan assumes that is neither the model nor the GPU: software, host, optimizer, data
/// parallelism. assets/setups.json holds today's PyTorch and those of the published tables.
namespace profiler {

enum class Gradients : uint8_t { kNone, kZeroed };  // between steps: freed, or kept and zeroed
inline constexpr std::array<std::string_view, 2> kGradientsNames{"none", "zeroed"};

enum class DdpBuckets : uint8_t { kNone, kCopy };  // none: views of the gradients, or none at all
inline constexpr std::array<std::string_view, 2> kDdpBucketsNames{"none", "copy"};

/// Device memory of a process before its first tensor.
struct ContextRow {
    GpuIds gpus;
    Figure bytes;
};

/// The `id` that is assumed where nothing tells the version of torch.
inline constexpr const char* kUsualSetup = "torch-2.11";

/// The oldest torch with which Temposcope can run a step. A step of an older one is run with the
/// usual torch, and what differs is in its software environment.
inline constexpr std::array<int, 2> kOldestTorch{2, 8};

struct SoftwareEnvironment {
    std::string id;    // "torch-2.11"
    std::string name;  // one line
    std::string torch;
    std::string cuda;
    ComputeCapability min_compute_capability;
    std::string older_gpus;  // the environment for GPUs below that capability; may be empty
    std::vector<ContextRow> context;  // the last matching row counts
    std::string kernel_set;           // which efficiencies of the calibration
    Gradients gradients = Gradients::kNone;
    std::string optimizer;         // an implementation of the calibration, or "recipe"
    std::string optimizer_master;  // for 16-bit weights with fp32 masters; empty: `optimizer`
    std::string optimizer_half;    // for 16 bits throughout; empty: `optimizer`
    bool clips_gradients = false;
    DdpBuckets ddp_buckets = DdpBuckets::kCopy;
    int64_t num_gpus = 1;
    Figure nccl_bytes;       // of a communicator, outside the allocator
    Figure host_forward_ns;  // host time per op
    Figure host_backward_ns;
    Figure matmul_scale;  // factor on the rate of 16-bit GEMMs

    const Figure& context_bytes(std::string_view gpu) const;
    /// "2.15": the torch that must run its steps. Empty: any, because its own is too old.
    std::string torch_to_run() const;
};

/// A row that names other versions of torch gives one environment more for each.
models::Result<std::vector<SoftwareEnvironment>> parse_environments(std::string_view text,
                                                                    const std::string& file);

/// Errors: an unknown id; all are listed.
models::Result<const SoftwareEnvironment*> find_environment(
    const std::vector<SoftwareEnvironment>& environments, std::string_view id);

/// The environment of `gpu`: `environment` itself, or the environment that it names for older GPUs.
/// Errors: a GPU that no software environment covers.
models::Result<const SoftwareEnvironment*> environment_for(
    const std::vector<SoftwareEnvironment>& environments, const SoftwareEnvironment& environment,
    const Gpu& gpu);

}  // namespace profiler
