#include "profiler/planner/step/kernel_model.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace profiler {
namespace {

constexpr double as_double(int64_t value) { return static_cast<double>(value); }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Share of the SMs that work, on average over the waves of `tiles`.
double wave_share(double tiles, double sm_count, double exponent) {
    const double waves = tiles / sm_count;
    const double share = waves / std::ceil(waves);
    return waves < 1 ? share : std::pow(share, exponent);
}

/// Best split of K for `tiles` output tiles.
double split_share(double tiles, int64_t k, const GemmModel& model, double sm_count) {
    double best = 0;
    for (const int split : {1, 2, 4, 8}) {
        if (split > 1 && as_double(k) / split < model.min_split_k.value) break;
        const double cost = split == 1 ? 1 : model.split_k.value;
        if (cost <= best) continue;  // not even full waves would be better
        best =
            std::max(best, cost * wave_share(tiles * split, sm_count, model.wave_exponent.value));
    }
    return best;
}

double tile_share(const GemmShape& shape, const GemmModel& model, double sm_count) {
    double best = 0;
    for (const TileRow& tile : model.tiles) {
        for (const auto& [tile_m, tile_n] :
             {std::pair(tile.m, tile.n), std::pair(tile.n, tile.m)}) {
            const int64_t rows = ceil_div(shape.m, tile_m);
            const int64_t columns = ceil_div(shape.n, tile_n);
            const double fill = as_double(shape.m) / as_double(rows * tile_m) *
                                (as_double(shape.n) / as_double(columns * tile_n));
            if (fill * tile.efficiency.value <= best) continue;  // split_share is at most 1
            const double tiles = as_double(shape.batch) * as_double(rows * columns);
            best = std::max(
                best, fill * tile.efficiency.value * split_share(tiles, shape.k, model, sm_count));
        }
    }
    return best;
}

bool is_16_bit(MatmulType type) { return type == MatmulType::kFp16 || type == MatmulType::kBf16; }

/// The measured rate of a large GEMM; empty if none was measured.
std::optional<double> measured_rate(const Calibration& calibration, const Gpu& gpu,
                                    MatmulType type) {
    const MatmulRow* row = last_row_about(calibration.matmul, gpu.id,
                                          [&](const MatmulRow& one) { return one.type == type; });
    return row != nullptr ? std::optional(row->flop_per_s.value) : std::nullopt;
}

/// Share of the specification for GPUs of this kind.
double rule_ratio(const Calibration& calibration, const Gpu& gpu) {
    double ratio = 1;
    for (const MatmulRule& rule : calibration.matmul_rules) {
        if (rule.tier != gpu.tier) continue;
        if (rule.min_compute_capability &&
            (!gpu.compute_capability || *gpu.compute_capability < *rule.min_compute_capability))
            continue;
        ratio = rule.ratio.value;
    }
    return ratio;
}

/// "74 %", "88.2 %".
std::string format_share(double share) { return fmt::format("{:.4g} %", 100 * share); }

}  // namespace

double gemm_efficiency(const GemmShape& shape, bool is_batched, const GemmModel& model,
                       double scale, double sm_count) {
    const double k = as_double(shape.k);
    const double ramp = k / (k + model.half_k.value);
    const double tiles = shape.m > 0 && shape.n > 0 ? tile_share(shape, model, sm_count) : 1;
    return scale * ramp * tiles * (is_batched ? model.batched.value : 1);
}

KernelModel::KernelModel(const Gpu& gpu, const SoftwareEnvironment& environment,
                         const Calibration& calibration)
    : calibration_(&calibration),
      sm_count_(gpu.sm_count.value),
      bytes_per_s_(gpu.bandwidth_bytes_per_s.value * calibration.bandwidth_ratio.value),
      gemm_scale_(calibration.gemm.scale.value) {
    if (!gpu.no_kernel_model.empty() || !gpu.peak(MatmulType::kFp32)) {
        throw std::logic_error("a kernel model of a GPU that has none");
    }
    if (const BandwidthRow* row = last_row_about(calibration.bandwidth, gpu.id)) {
        bytes_per_s_ = row->bytes_per_s.value;
        bandwidth_is_measured_ = true;
    }
    const LaunchRow& launch = *last_row_about(calibration.launch, gpu.id);
    launch_ns_ = launch.ns.value;
    is_calibrated_ = !launch.gpus.empty();
    if (const GemmScaleRow* row = last_row_about(calibration.gemm_scale, gpu.id)) {
        gemm_scale_ *= row->ratio.value;
    }
    for (std::size_t i = 0; i < rates_.size(); ++i) {
        auto type = static_cast<MatmulType>(i);
        has_rate_[i] = gpu.peak(type).has_value();
        if (!has_rate_[i]) type = MatmulType::kFp32;
        const auto measured = measured_rate(calibration, gpu, type);
        const double ratio = rule_ratio(calibration, gpu);
        ratios_[i] = measured ? 0 : ratio;
        rates_[i] = measured.value_or(gpu.peak(type)->value * ratio) *
                    (is_16_bit(type) ? environment.matmul_scale.value : 1);
    }
    for (const EfficiencyRow& row : calibration.efficiencies) {
        if (!row.kernel_set.empty() && row.kernel_set != environment.kernel_set) continue;
        if (is_about(row.gpus, gpu.id)) {
            efficiencies_[static_cast<std::size_t>(row.kernel)].push_back(&row);
        }
    }
}

double KernelModel::efficiency(const KernelWork& work) const {
    const auto& rows = efficiencies_[static_cast<std::size_t>(work.kernel)];
    const auto row = std::find_if(rows.rbegin(), rows.rend(), [&](const EfficiencyRow* r) {
        const bool is_of_its_kernels = r->kernel_set.empty() || !work.is_own;
        return is_of_its_kernels && (!r->type || *r->type == work.type) &&
               work.moved_bytes >= r->min_bytes &&
               (r->max_bytes < 0 || work.moved_bytes <= r->max_bytes);
    });
    return row == rows.rend() ? 1 : (*row)->efficiency.value;
}

double KernelModel::time_ns(const KernelWork& work) const {
    const double bytes = as_double(work.moved_bytes);
    if (!is_gemm(work.kernel) && !is_attention(work.kernel)) {
        return bytes / (bytes_per_s_ * efficiency(work)) * kNsPerS + launch_ns();
    }
    const double share = is_gemm(work.kernel)
                             ? gemm_efficiency(work.shape, work.kernel == KernelKind::kBatchedGemm,
                                               calibration_->gemm, gemm_scale_, sm_count_)
                             : efficiency(work);
    const double compute_s = as_double(work.flop) / (flop_per_s(work.type) * share);
    const double memory_s = bytes / (calibration_->gemm.bandwidth_share.value * bytes_per_s_);
    return std::max(compute_s, memory_s) * kNsPerS + launch_ns();
}

std::vector<std::string> KernelModel::notes(std::optional<MatmulType> gemms) const {
    std::vector<std::string> notes;
    if (gemms) {
        const auto i = static_cast<std::size_t>(*gemms);
        if (ratios_[i] > 0) {
            notes.push_back(fmt::format(
                "GEMM rates are extrapolated: {} of the specification's {} rate",
                format_share(ratios_[i]), name_of(has_rate_[i] ? *gemms : MatmulType::kFp32)));
        }
        if (!has_rate_[i]) {
            notes.push_back(
                fmt::format("the {} rate is not known: the fp32 rate is assumed", name_of(*gemms)));
        }
    }
    if (!bandwidth_is_measured_) {
        notes.push_back(fmt::format("bandwidth is extrapolated: {} of the specification",
                                    format_share(calibration_->bandwidth_ratio.value)));
    }
    return notes;
}

}  // namespace profiler
