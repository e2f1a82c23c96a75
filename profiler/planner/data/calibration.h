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
    kSoftmaxBackward,
    kLayerNorm,
    kLayerNormBackward,
    kColumnReduction,  // sums over rows: gradients of biases
    kTransposingCopy,
    kFusedNorm,              // hand-fused normalization kernels
    kGeluBackward,           // of Tempo's in-place GELU: a long polynomial
    kPublishedGeluBackward,  // of Tempo's 2022 release
    kGather,                 // embedding lookups and their gradients
    kFlashAttention,
    kEfficientAttention,
    kHostCopy  // between the GPU and the host
};
inline constexpr std::array<std::string_view, 16> kKernelKindNames{"gemm",
                                                                   "batched_gemm",
                                                                   "element_wise",
                                                                   "softmax",
                                                                   "softmax_backward",
                                                                   "layer_norm",
                                                                   "layer_norm_backward",
                                                                   "column_reduction",
                                                                   "transposing_copy",
                                                                   "fused_norm",
                                                                   "gelu_backward",
                                                                   "published_gelu_backward",
                                                                   "gather",
                                                                   "flash_attention",
                                                                   "efficient_attention",
                                                                   "host_copy"};
constexpr std::string_view name_of(KernelKind k) {
    return kKernelKindNames[static_cast<std::size_t>(k)];
}
constexpr bool is_gemm(KernelKind k) {
    return k == KernelKind::kGemm || k == KernelKind::kBatchedGemm;
}
constexpr bool is_attention(KernelKind k) {
    return k == KernelKind::kFlashAttention || k == KernelKind::kEfficientAttention;
}

struct MatmulRow {  // measured rate of a large product, 8192 x 8192 matrices
    GpuIds gpus;
    MatmulType type = MatmulType::kFp32;
    Figure flop_per_s;
};
struct MatmulRule {  // share of the specification, for GPUs without a measured rate
    std::optional<Tier> tier;
    std::optional<MatmulType> type;
    std::optional<ComputeCapability> min_compute_capability;
    Figure ratio;
};
struct BandwidthRow {  // streaming, measured
    GpuIds gpus;
    Figure bytes_per_s;
};
struct BandwidthRule {  // share of the specification, for GPUs without a measured bandwidth
    std::optional<Tier> tier;
    double max_bus_bits = 0;  // of the memory: up to 512 it is GDDR; 0: any memory
    Figure ratio;
};
struct L2Row {
    GpuIds gpus;
    Figure bytes_per_s;
};
/// What a product draws at the limit of the board's power.
struct PowerRow {
    GpuIds gpus;
    MatmulType type = MatmulType::kFp32;
    double s_per_flop = 0;
    double s_per_byte = 0;
    std::string source;
};
struct LaunchRow {
    GpuIds gpus;
    Figure ns;  // gap and ramp of one kernel
};
/// A tile of the result that one block computes, and its transpose.
struct TileRow {
    int64_t m = 0;
    int64_t n = 0;
    std::optional<MatmulType> type;                           // empty: any
    std::optional<ComputeCapability> min_compute_capability;  // empty: any
    int64_t batched_of = 0;  // batched products of GPUs with this major capability have only these
    std::string source;
};
/// What a tile costs besides its multiplications.
struct TileCostRow {
    GpuIds gpus;
    std::optional<MatmulType> type;
    std::optional<ComputeCapability> min_compute_capability;
    double load = 0;    // c: a step of K takes 1 + c (1/TM + 1/TN) times as long
    double fill_k = 0;  // k0: elements of K that filling the pipeline costs in each wave
    std::string source;
};
/// Splitting K into parts that are added up.
struct SplitModel {
    Figure min_k;       // shortest part
    Figure ns;          // of the second kernel
    Figure last_major;  // newer generations take other tiles instead
};
/// Whose kernels tell the rates of a GPU.
enum class RateBasis : uint8_t { kOwn, kOthers, kSpecification };
inline constexpr std::array<std::string_view, 3> kRateBasisNames{"own", "others", "specification"};

/// How far off predicted times are: of nine steps in ten, predicted / measured - 1 is within error.
struct TimeAccuracy {
    RateBasis basis = RateBasis::kSpecification;
    double error = 0;

    double low_ns(double time_ns) const { return time_ns / (1 + error); }
    double high_ns(double time_ns) const { return time_ns / (1 - error); }
    /// "±14 %: rates that others measured on this GPU".
    std::string text() const;
};
struct AccuracyRow {
    GpuIds gpus;
    TimeAccuracy accuracy;
    std::string source;
};
struct EfficiencyRow {
    KernelKind kernel = KernelKind::kElementWise;
    std::string kernel_set;  // empty: any
    GpuIds gpus;
    std::optional<MatmulType> type;  // empty: any
    int64_t min_bytes = 0;           // of the data that one kernel moves
    int64_t max_bytes = -1;          // -1: any
    int64_t min_columns = 0;         // of a row that a block normalizes
    double min_l2_bytes = 0;
    Figure efficiency;
};
/// The kernel set of our own kernels, in every software environment.
inline constexpr std::string_view kOwnKernelSet = "temposcope";

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
struct HostLinkRow {  // between the GPU and the host, in each direction
    std::string name;
    GpuIds gpus;
    Figure bytes_per_s;  // of pinned memory
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
    std::vector<BandwidthRule> bandwidth_rules;
    std::vector<L2Row> l2;
    Figure l2_bytes_per_clock;  // of a multiprocessor, for GPUs without a row
    Figure l2_share;            // of the cache that a kernel finds its data in
    std::vector<PowerRow> power;
    std::vector<TileRow> tiles;
    std::vector<TileCostRow> tile_costs;
    SplitModel split_k;
    std::vector<EfficiencyRow> efficiencies;
    std::vector<LaunchRow> launch;
    std::vector<AccuracyRow> accuracy;
    std::vector<OptimizerRow> optimizers;
    Figure clipping_bytes_per_parameter;
    std::vector<LinkRow> links;
    std::vector<HostLinkRow> host_links;
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
