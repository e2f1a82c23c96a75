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
///     GEMM, attention   t = max(flop / (mm · eff), bytes / (0.9 · vec)) + t_k
///     other kernels     t = bytes / (vec · eff) + t_k
///
/// mm is the rate of a large GEMM, vec the streaming bandwidth, t_k the gap before a kernel and its
/// ramp-up. They come from the calibration, or for GPUs without measured rows from the
/// specification.
namespace profiler {

/// What to expect of times that no measurement of the GPU stands behind.
inline constexpr std::string_view kNotCalibratedText =
    "times are not calibrated on this GPU: expect ±20 %; most published times are met within 10 %, "
    "the worst is 30 % off (docs/accuracy.md)";
/// The ±20 % of that text.
inline constexpr double kNotCalibratedError = 0.20;

/// `batch` GEMMs of [m, k] by [k, n]. m = 0: only k is known.
struct GemmShape {
    int64_t batch = 1;
    int64_t m = 0;
    int64_t n = 0;
    int64_t k = 0;
    friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Share of mm that a GEMM reaches:
///     g · K/(K+k0) · max over tiles and splits of fill · tile · (waves/⌈waves⌉)^q
/// with exponent 1 below one wave. Splitting K into 2, 4 or 8 parts multiplies the tiles by that
/// number, costs 5 %, and needs parts of at least 512. `scale` is g times the factor of the GPU.
double gemm_efficiency(const GemmShape& shape, bool is_batched, const GemmModel& model,
                       double scale, double sm_count);

struct KernelWork {
    KernelKind kernel = KernelKind::kElementWise;
    MatmulType type = MatmulType::kFp32;  // of GEMMs and attention
    int64_t flop = 0;
    int64_t moved_bytes = 0;  // read and written, each once
    GemmShape shape;          // of GEMMs
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
    /// Whether times were measured on this GPU.
    bool is_calibrated() const { return is_calibrated_; }
    /// What was assumed, as notes: rates that come from the specification only. Those of GEMMs are
    /// left out for work without any.
    std::vector<std::string> notes(std::optional<MatmulType> gemms) const;

private:
    double efficiency(const KernelWork& work) const;

    const Calibration* calibration_;
    double sm_count_ = 0;
    double bytes_per_s_ = 0;
    double gemm_scale_ = 1;
    double launch_ns_ = 0;
    std::array<double, kMatmulTypeNames.size()> rates_{};   // flop/s
    std::array<double, kMatmulTypeNames.size()> ratios_{};  // of the specification; 0 = measured
    std::array<bool, kMatmulTypeNames.size()> has_rate_{};  // false: the fp32 rate is used
    bool bandwidth_is_measured_ = false;
    bool is_calibrated_ = false;  // has rows for this GPU
    std::array<std::vector<const EfficiencyRow*>, kKernelKindNames.size()> efficiencies_;
};

}  // namespace profiler
