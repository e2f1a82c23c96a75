#pragma once

#include "models/config/precision.h"
#include "models/config/recipe.h"
#include "models/config/result.h"
#include "profiler/planner/data/figures.h"
#include "profiler/planner/data/gpu.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Every constant of the time model, with its source: assets/calibration.json, followed by the rows
/// of the user's own file. If several rows match, the last one counts: special rows follow general
/// rows, and rows measured on this machine follow published rows. docs/dev/planner.md explains the
/// equations.
namespace profiler {

/// Kernels that the model tells apart.
enum class KernelKind : uint8_t {
    kGemm,
    kBatchedGemm,
    kElementWise,
    kSoftmax,
    kLayerNorm,
    kColumnReduction,  // sums over rows: gradients of biases
    kTransposingCopy,
    kFusedNorm,              // hand-fused normalization kernels
    kGeluBackward,           // of Tempo's in-place GELU: a long polynomial
    kPublishedGeluBackward,  // of Tempo's 2022 release
    kGather,                 // embedding lookups and their gradients
    kFlashAttention,
    kEfficientAttention
};
inline constexpr std::array<std::string_view, 13> kKernelKindNames{"gemm",
                                                                   "batched_gemm",
                                                                   "element_wise",
                                                                   "softmax",
                                                                   "layer_norm",
                                                                   "column_reduction",
                                                                   "transposing_copy",
                                                                   "fused_norm",
                                                                   "gelu_backward",
                                                                   "published_gelu_backward",
                                                                   "gather",
                                                                   "flash_attention",
                                                                   "efficient_attention"};
constexpr std::string_view name_of(KernelKind k) {
    return kKernelKindNames[static_cast<std::size_t>(k)];
}
constexpr bool is_gemm(KernelKind k) {
    return k == KernelKind::kGemm || k == KernelKind::kBatchedGemm;
}
constexpr bool is_attention(KernelKind k) {
    return k == KernelKind::kFlashAttention || k == KernelKind::kEfficientAttention;
}

struct MatmulRow {  // measured rate of a large GEMM
    GpuIds gpus;
    MatmulType type = MatmulType::kFp32;
    Figure flop_per_s;
};
struct MatmulRule {  // share of the specification, for GPUs without a measured rate
    Tier tier = Tier::kServer;
    std::optional<ComputeCapability> min_compute_capability;
    Figure ratio;
};
struct BandwidthRow {  // streaming, measured
    GpuIds gpus;
    Figure bytes_per_s;
};
struct LaunchRow {
    GpuIds gpus;
    Figure ns;  // gap and ramp of one kernel
};
struct GemmScaleRow {
    GpuIds gpus;
    Figure ratio;
};
struct TileRow {
    int64_t m = 0;
    int64_t n = 0;
    Figure efficiency;
};
/// Constants of the efficiency of GEMMs.
struct GemmModel {
    Figure scale;            // g
    Figure half_k;           // k0: contracted length at which half the rate is reached
    Figure wave_exponent;    // q
    Figure batched;          // factor of batched GEMMs
    Figure bandwidth_share;  // of the streaming bandwidth
    Figure split_k;          // factor when the contracted length is split
    Figure min_split_k;      // shortest part of a split
    std::vector<TileRow> tiles;
};
struct EfficiencyRow {
    KernelKind kernel = KernelKind::kElementWise;
    std::string kernel_set;  // empty: any
    GpuIds gpus;
    std::optional<MatmulType> type;  // empty: any
    int64_t min_bytes = 0;           // of the data that one kernel moves
    int64_t max_bytes = -1;          // -1: any
    Figure efficiency;
};

/// How an optimizer stores weights and moments.
enum class OptimizerState : uint8_t { kFp32, kMaster, kHalf };
inline constexpr std::array<std::string_view, 3> kOptimizerStateNames{"fp32", "master", "half"};
OptimizerState optimizer_state_of(models::Precision precision);

struct OptimizerRow {
    std::string implementation;  // "adamw_fused", "bert_adam"
    OptimizerState state = OptimizerState::kFp32;
    models::Optimizer allocates_as = models::Optimizer::kAdamW;  // ours with the same temporaries
    double bytes_per_parameter = 0;
    double launches_per_tensor = 0;
    std::string source;
};
struct LinkRow {
    std::string name;
    GpuIds gpus;
    Figure bus_bytes_per_s;  // of a ring all-reduce, per GPU
};
struct NetworkRow {  // between nodes
    std::string name;
    GpuIds gpus;
    Figure bytes_per_s;  // of one GPU's share, in one direction
};
/// A protocol of NCCL: LL sends a flag with each word and has no barriers.
struct ProtocolRow {
    std::string name;
    double base_ns = 0;          // of a collective
    double step_ns = 0;          // of each hop on a node
    double network_step_ns = 0;  // of each hop between nodes
    double bandwidth_share = 1;
    std::string source;
};

struct Calibration {
    std::vector<MatmulRow> matmul;
    std::vector<MatmulRule> matmul_rules;
    std::vector<BandwidthRow> bandwidth;
    Figure bandwidth_ratio;  // of the specification, for GPUs without a measured bandwidth
    GemmModel gemm;
    std::vector<GemmScaleRow> gemm_scale;
    std::vector<EfficiencyRow> efficiencies;
    std::vector<LaunchRow> launch;
    std::vector<OptimizerRow> optimizers;
    Figure clipping_bytes_per_parameter;
    std::vector<LinkRow> links;
    std::vector<NetworkRow> networks;
    std::vector<ProtocolRow> protocols;
    Figure gpus_per_node;
    Figure all_reduce_overlap;        // share of backward that can hide it
    Figure all_reduce_exposed_share;  // share that is always exposed
};

models::Result<Calibration> parse_calibration(std::string_view text, const std::string& file);

/// `base` with the rows of a user's file appended. The file may contain only lists of rows.
models::Result<Calibration> extend_calibration(Calibration base, std::string_view text,
                                               const std::string& file);

}  // namespace profiler
