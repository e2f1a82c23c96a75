#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// How a training step is spread over many GPUs, by PyTorch's own wrappers (docs/many_gpus.md). A
/// program in Python does it: app/python/temposcope/_parallel.py.
namespace models {

enum class Strategy : uint8_t {
    kNone,            // one GPU
    kDdp,             // DistributedDataParallel: a copy of all on each GPU
    kZero1,           // DDP, and ZeroRedundancyOptimizer shards the optimizer's state
    kFsdp2,           // fully_shard of each layer: parameters, gradients and state are shards
    kFsdp2NoReshard,  // the same, but gathered parameters stay until backward
    kHsdp,            // FSDP2 in groups of N, DDP among the groups
    kTensor,          // tensor parallelism in groups of N, FSDP2 among the groups
    kPipeline         // pipelines of N stages (1F1B), DDP among the pipelines
};
inline constexpr std::array<std::string_view, 8> kStrategyNames{
    "none", "ddp", "zero1", "fsdp2", "fsdp2-no-reshard", "hsdp", "tp", "pp"};
/// What users may write: the last ones have a number.
inline constexpr std::string_view kStrategyList =
    "none, ddp, zero1, fsdp2, fsdp2-no-reshard, hsdp:N, tp:N or pp:N";

constexpr std::string_view name_of(Strategy s) { return kStrategyNames[static_cast<size_t>(s)]; }

inline constexpr int64_t kMostRanks = 65'536;

struct Parallel {
    Strategy strategy = Strategy::kNone;
    int64_t group_size = 0;  // N of hsdp:N, tp:N and pp:N; 0: the strategy has none
};

/// Errors: an unknown strategy, a number that is missing or has no meaning.
Result<Parallel> parse_parallel(std::string_view text);
std::string to_text(const Parallel& parallel);  // "hsdp:8"

/// Errors: the number of ranks, the model, its recipe or its precision does not go with it.
Result<void> validate(const Workload& workload, const Parallel& parallel, int64_t world_size);

/// Micro-batches of a step: a pipeline has at least as many as stages.
int64_t micro_batches_per_step(const Workload& workload, const Parallel& parallel);

/// Sequences that the step of all ranks trains.
int64_t sequences_per_step(const Workload& workload, const Parallel& parallel, int64_t world_size);

}  // namespace models
