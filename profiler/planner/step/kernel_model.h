#pragma once

#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// How long one kernel takes on a GPU: the only place where work becomes time.
///
///     product, attention   t = max(flop / (mm · eff), bytes / (0.9 · vec)) + t_k
///     anything else        t = bytes / (vec · eff) + t_k
///
/// mm is the rate of a large product, vec the streaming bandwidth, t_k the gap and ramp of a
/// launch; all from the calibration, or from the specification by its rules.
namespace profiler {

/// `batch` products of [m, k] by [k, n]; m = 0: the shape is not known, only k.
struct GemmShape {
    int64_t batch = 1;
    int64_t m = 0;
    int64_t n = 0;
    int64_t k = 0;
    friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Share of mm that a product reaches:
///     g · K/(K+k0) · max over tiles and splits of fill · tile · (waves/⌈waves⌉)^q
/// with exponent 1 below one wave. A split of K into 2, 4 or 8 parts makes that many times the
/// tiles, costs 5 %, and needs parts of at least 512. `scale` is g times the GPU's own factor.
double gemm_efficiency(const GemmShape& shape, bool is_batched, const GemmModel& model,
                       double scale, double sm_count);

struct KernelWork {
    KernelKind kernel = KernelKind::kElementWise;
    MatmulType type = MatmulType::kFp32;  // of products and attention
    int64_t flop = 0;
    int64_t moved_bytes = 0;  // read and written, each once
    GemmShape shape;          // of products
    friend bool operator==(const KernelWork&, const KernelWork&) = default;
};

/// A GPU under a setup. Keeps pointers into `calibration`, which must outlive it.
class KernelModel {
public:
    /// Requires a GPU that has a kernel model.
    KernelModel(const Gpu& gpu, const SoftwareEnvironment& environment,
                const Calibration& calibration);

    double time_ns(const KernelWork& work) const;

    double flop_per_s(MatmulType type) const { return rates_[static_cast<std::size_t>(type)]; }
    double bytes_per_s() const { return bytes_per_s_; }
    double launch_ns() const { return launch_ns_; }
    /// What was assumed, as sentences: rates that follow from the specification alone.
    std::vector<std::string> notes(MatmulType type) const;

private:
    double efficiency(const KernelWork& work) const;

    const Calibration* calibration_;
    double sm_count_ = 0;
    double bytes_per_s_ = 0;
    double gemm_scale_ = 1;
    double launch_ns_ = 0;
    std::array<double, kMatmulTypeNames.size()> rates_{};   // flop/s
    std::array<double, kMatmulTypeNames.size()> ratios_{};  // of the specification; 0 = measured
    std::array<bool, kMatmulTypeNames.size()> has_rate_{};  // of its own; else that of fp32
    bool bandwidth_is_measured_ = false;
    bool is_calibrated_ = false;  // by rows of this GPU's own
    std::array<std::vector<const EfficiencyRow*>, kKernelKindNames.size()> efficiencies_;
};

}  // namespace profiler
