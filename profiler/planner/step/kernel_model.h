#pragma once

#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How long one kernel takes on a GPU. Only this file turns work into time.
///
/// A product cuts its result [m, n] into tiles of TM x TN. A block computes a tile, or one of s
/// parts of its K, and the multiprocessors (SM) take the blocks in waves:
///
///          ◄──── n ────►
///        ▲ ┌───┬───┬───┬┄┐     blocks = b ⌈m/TM⌉ ⌈n/TN⌉ s        waves = ⌈blocks / SM⌉
///        m │TM │   │   │ ┊     e      = 1 / (1 + c (1/TM + 1/TN))
///        ▼ │xTN│   │   │ ┊
///          ├┄┄┄┼┄┄┄┼┄┄┄┼┄┤     t = max(2 TM TN (K/s + k0) waves SM / (r e),
///          └┄┄┄┴┄┄┄┴┄┄┄┴┄┘             bytes / vec, power) + t_k
///
/// A tile that hangs over the edge costs as much as the others, and so does a wave that is not
/// full. A tile loads TM + TN elements for TM TN products, hence e. Filling the pipeline costs a
/// wave k0 elements of K. cuBLAS's choice is near the best, so T and s are those of the least time.
/// Adding up s parts takes (2 s + 1) m n 4 bytes and another kernel.
///
/// r is the rate at which a product of 8192 x 8192 matrices takes the measured time. Boards that
/// run at the limit of their power (L4, T4) cannot be faster than flop · J/flop + bytes · J/byte
/// over that power.
///
///     host copy       t = bytes / rate of the link + t_k
///     attention       t = max(flop / (mm · share), bytes / vec, power) + t_k
///     other kernels   t = bytes / (rate · share) + t_k,   rate: of L2 where it holds the bytes
///
/// mm is the measured rate of a large product, vec the streaming bandwidth, t_k the gap before a
/// kernel and its ramp-up. They come from the calibration, or for GPUs without measured rows from
/// the specification. Source of form and constants: NeuSight's kernels (docs/dev/planner.md).
namespace profiler {

/// `batch` GEMMs of [m, k] by [k, n]. m = 0: only k is known.
struct GemmShape {
    int64_t batch = 1;
    int64_t m = 0;
    int64_t n = 0;
    int64_t k = 0;
    friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

struct Tile {
    int64_t m = 0;
    int64_t n = 0;
};

/// What a product meets on a GPU.
struct ProductRates {
    double sm_count = 1;
    double flop_per_s = 0;  // r
    double bytes_per_s = 0;
    double load = 0;         // c
    double fill_k = 0;       // k0
    double s_per_flop = 0;   // at the limit of power; 0: there is none
    double s_per_byte = 0;   // likewise
    double min_split_k = 0;  // shortest part of K
    double split_s = 0;      // of the kernel that adds up the parts
    bool splits_k = true;
    std::vector<Tile> tiles;  // not empty
};

/// The time of a product on its own, without the gap before it. Edges of 0 count as 1.
double product_s(const GemmShape& shape, double moved_bytes, const ProductRates& rates);

struct KernelWork {
    KernelKind kernel = KernelKind::kElementWise;
    MatmulType type = MatmulType::kFp32;  // of GEMMs and attention
    int64_t flop = 0;
    int64_t moved_bytes = 0;  // read and written, each once
    GemmShape shape;          // of GEMMs
    int64_t columns = 0;      // of softmax: elements of a row; 0: not known
    bool is_own = false;  // a kernel of ours: what torch's kernels of some year reach is not its
    friend bool operator==(const KernelWork&, const KernelWork&) = default;
};

/// The kernels of a GPU in a software environment. `calibration` must outlive the model.
class KernelModel {
public:
    /// Requires a GPU with a kernel model.
    KernelModel(const Gpu& gpu, const SoftwareEnvironment& environment,
                const Calibration& calibration);

    double time_ns(const KernelWork& work) const;

    double flop_per_s(MatmulType type) const { return rates_[static_cast<std::size_t>(type)]; }
    double bytes_per_s() const { return bytes_per_s_; }
    double launch_ns() const { return launch_ns_; }
    /// How far off the times of a step are.
    const TimeAccuracy& accuracy() const { return accuracy_; }
    /// What was assumed, as notes: rates that come from the specification only. Those of GEMMs are
    /// left out for work without any.
    std::vector<std::string> notes(std::optional<MatmulType> gemms) const;

private:
    static constexpr std::size_t kNumTypes = kMatmulTypeNames.size();

    ProductRates product_rates(const Gpu& gpu, MatmulType type, double flop_per_s,
                               bool is_batched) const;
    double efficiency(const KernelWork& work) const;
    double contraction_s(const KernelWork& work) const;
    double read_again_bytes(const KernelWork& work) const;
    double stream_s(const KernelWork& work) const;

    const Calibration* calibration_;
    double sm_count_ = 0;
    double bytes_per_s_ = 0;
    double l2_bytes_ = 0;
    double l2_bytes_per_s_ = 0;
    double launch_ns_ = 0;
    double host_bytes_per_s_ = 0;
    TimeAccuracy accuracy_;
    std::array<double, kNumTypes> rates_{};                        // mm, flop/s
    std::array<std::array<ProductRates, 2>, kNumTypes> products_;  // single, batched
    std::array<double, kNumTypes> ratios_{};  // of the specification; 0 = measured
    double bandwidth_ratio_ = 0;              // likewise
    std::array<bool, kNumTypes> has_rate_{};  // false: the fp32 rate is used
    std::array<std::vector<const EfficiencyRow*>, kKernelKindNames.size()> efficiencies_;
};

}  // namespace profiler
