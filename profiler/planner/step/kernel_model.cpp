#include "profiler/planner/step/kernel_model.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace profiler {
namespace {

constexpr double as_double(int64_t value) { return static_cast<double>(value); }

double ceil_div(int64_t a, int64_t b) { return as_double((std::max<int64_t>(a, 1) + b - 1) / b); }

/// The capability that a row asks for.
bool has_capability(const Gpu& gpu, const std::optional<ComputeCapability>& least) {
    return !least || (gpu.compute_capability && *gpu.compute_capability >= *least);
}

template <typename Row>
bool is_of_type(const Row& row, MatmulType type) {
    return !row.type || *row.type == type;
}

/// cuBLAS has few tiles for batched products in fp32 on some generations.
std::vector<Tile> tiles_of(const Calibration& calibration, const Gpu& gpu, MatmulType type,
                           bool is_batched) {
    std::vector<Tile> tiles, batched;
    for (const TileRow& row : calibration.tiles) {
        if (!is_of_type(row, type) || !has_capability(gpu, row.min_compute_capability)) continue;
        const bool is_special = row.batched_of > 0;
        if (is_special && (!gpu.compute_capability ||
                           gpu.compute_capability->major != static_cast<int>(row.batched_of))) {
            continue;
        }
        std::vector<Tile>& list = is_special ? batched : tiles;
        list.push_back({row.m, row.n});
        if (row.m != row.n) list.push_back({row.n, row.m});
    }
    return is_batched && !batched.empty() ? batched : tiles;
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
double rule_ratio(const Calibration& calibration, const Gpu& gpu, MatmulType type) {
    double ratio = 1;
    for (const MatmulRule& rule : calibration.matmul_rules) {
        const bool holds = (!rule.tier || *rule.tier == gpu.tier) && is_of_type(rule, type) &&
                           has_capability(gpu, rule.min_compute_capability);
        if (holds) ratio = rule.ratio.value;
    }
    return ratio;
}

double bandwidth_ratio(const Calibration& calibration, const Gpu& gpu) {
    double ratio = 1;
    for (const BandwidthRule& rule : calibration.bandwidth_rules) {
        const bool is_narrow =
            gpu.memory_bus_bits && gpu.memory_bus_bits->value <= rule.max_bus_bits;
        const bool holds =
            (!rule.tier || *rule.tier == gpu.tier) && (rule.max_bus_bits == 0 || is_narrow);
        if (holds) ratio = rule.ratio.value;
    }
    return ratio;
}

double l2_bytes_per_s(const Calibration& calibration, const Gpu& gpu) {
    if (const L2Row* row = last_row_about(calibration.l2, gpu.id)) return row->bytes_per_s.value;
    const double clock_hz = gpu.clock_khz ? gpu.clock_khz->value * 1e3 : 0;
    return calibration.l2_bytes_per_clock.value * gpu.sm_count.value * clock_hz;
}

/// "74 %", "88.2 %".
std::string format_share(double share) { return fmt::format("{:.4g} %", 100 * share); }

}  // namespace

double product_s(const GemmShape& shape, double moved_bytes, const ProductRates& rates) {
    constexpr std::array<int, 7> kParts{1, 2, 3, 4, 6, 9, 16};
    const double k = as_double(std::max<int64_t>(shape.k, 1));
    const double result = as_double(shape.m) * as_double(shape.n);  // elements
    double best_s = std::numeric_limits<double>::infinity();
    for (const Tile& tile : rates.tiles) {
        const double area = as_double(tile.m) * as_double(tile.n);
        const double load = 1 + rates.load * (1 / as_double(tile.m) + 1 / as_double(tile.n));
        const double tiles = as_double(std::max<int64_t>(shape.batch, 1)) *
                             ceil_div(shape.m, tile.m) * ceil_div(shape.n, tile.n);
        for (const int parts : kParts) {
            const bool is_split = parts > 1;
            if (is_split && (!rates.splits_k || k / parts < rates.min_split_k)) break;
            const double part_k = std::ceil(k / parts);
            const double waves = std::ceil(tiles * parts / rates.sm_count);
            const double bytes = moved_bytes + (is_split ? (2 * parts + 1) * result * 4 : 0);
            const double compute_s = 2 * area * (part_k + rates.fill_k) * waves * rates.sm_count *
                                     load / rates.flop_per_s;
            const double power_s =
                rates.s_per_flop * 2 * area * part_k * tiles * parts + rates.s_per_byte * bytes;
            const double time_s = std::max({compute_s, bytes / rates.bytes_per_s, power_s});
            best_s = std::min(best_s, time_s + (is_split ? rates.split_s : 0));
        }
    }
    return best_s;
}

KernelModel::KernelModel(const Gpu& gpu, const SoftwareEnvironment& environment,
                         const Calibration& calibration)
    : calibration_(&calibration),
      sm_count_(gpu.sm_count.value),
      l2_bytes_(gpu.l2_bytes.value),
      l2_bytes_per_s_(l2_bytes_per_s(calibration, gpu)) {
    if (!gpu.no_kernel_model.empty() || !gpu.peak(MatmulType::kFp32)) {
        throw std::logic_error("a kernel model of a GPU that has none");
    }
    if (const BandwidthRow* row = last_row_about(calibration.bandwidth, gpu.id)) {
        bytes_per_s_ = row->bytes_per_s.value;
    } else {
        bandwidth_ratio_ = bandwidth_ratio(calibration, gpu);
        bytes_per_s_ = gpu.bandwidth_bytes_per_s.value * bandwidth_ratio_;
    }
    launch_ns_ = last_row_about(calibration.launch, gpu.id)->ns.value;
    host_bytes_per_s_ = last_row_about(calibration.host_links, gpu.id)->bytes_per_s.value;
    accuracy_ = last_row_about(calibration.accuracy, gpu.id)->accuracy;
    for (std::size_t i = 0; i < kNumTypes; ++i) {
        auto type = static_cast<MatmulType>(i);
        has_rate_[i] = gpu.peak(type).has_value();
        if (!has_rate_[i]) type = MatmulType::kFp32;
        const auto measured = measured_rate(calibration, gpu, type);
        const double ratio = rule_ratio(calibration, gpu, type);
        ratios_[i] = measured ? 0 : ratio;
        rates_[i] = measured.value_or(gpu.peak(type)->value * ratio) *
                    (is_16_bit(type) ? environment.matmul_scale.value : 1);
        products_[i] = {product_rates(gpu, type, rates_[i], false),
                        product_rates(gpu, type, rates_[i], true)};
    }
    for (const EfficiencyRow& row : calibration.efficiencies) {
        const bool is_of_set = row.kernel_set.empty() || row.kernel_set == kOwnKernelSet ||
                               row.kernel_set == environment.kernel_set;
        if (is_of_set && is_about(row.gpus, gpu.id) && gpu.l2_bytes.value >= row.min_l2_bytes) {
            efficiencies_[static_cast<std::size_t>(row.kernel)].push_back(&row);
        }
    }
}

ProductRates KernelModel::product_rates(const Gpu& gpu, MatmulType type, double flop_per_s,
                                        bool is_batched) const {
    const Calibration& calibration = *calibration_;
    const TileCostRow* cost =
        last_row_about(calibration.tile_costs, gpu.id, [&](const TileCostRow& row) {
            return is_of_type(row, type) && has_capability(gpu, row.min_compute_capability);
        });
    ProductRates rates{.sm_count = sm_count_,
                       .flop_per_s = flop_per_s,
                       .bytes_per_s = bytes_per_s_,
                       .load = cost->load,
                       .fill_k = cost->fill_k,
                       .min_split_k = calibration.split_k.min_k.value,
                       .split_s = calibration.split_k.ns.value / kNsPerS,
                       .tiles = tiles_of(calibration, gpu, type, false)};
    rates.splits_k = false;
    // So that the product that mm was measured with takes its time.
    constexpr GemmShape kLarge{.m = 8192, .n = 8192, .k = 8192};
    constexpr double kLargeFlop = 2.0 * 8192 * 8192 * 8192;
    rates.flop_per_s *= product_s(kLarge, 0, rates) * flop_per_s / kLargeFlop;
    rates.splits_k = !is_batched && gpu.compute_capability &&
                     gpu.compute_capability->major <= calibration.split_k.last_major.value;
    if (is_batched) rates.tiles = tiles_of(calibration, gpu, type, true);
    const PowerRow* power = last_row_about(calibration.power, gpu.id,
                                           [&](const PowerRow& row) { return row.type == type; });
    if (power != nullptr) {
        rates.s_per_flop = power->s_per_flop;
        rates.s_per_byte = power->s_per_byte;
    }
    return rates;
}

double KernelModel::efficiency(const KernelWork& work) const {
    const auto& rows = efficiencies_[static_cast<std::size_t>(work.kernel)];
    const auto row = std::find_if(rows.rbegin(), rows.rend(), [&](const EfficiencyRow* r) {
        const bool is_of_its_kernels =
            r->kernel_set.empty() || (r->kernel_set == kOwnKernelSet) == work.is_own;
        return is_of_its_kernels && is_of_type(*r, work.type) && work.moved_bytes >= r->min_bytes &&
               (r->max_bytes < 0 || work.moved_bytes <= r->max_bytes) &&
               work.columns >= r->min_columns;
    });
    return row == rows.rend() ? 1 : (*row)->efficiency.value;
}

double KernelModel::contraction_s(const KernelWork& work) const {
    const ProductRates& rates = products_[static_cast<std::size_t>(work.type)]
                                         [work.kernel == KernelKind::kBatchedGemm ? 1 : 0];
    const auto bytes = as_double(work.moved_bytes);
    const bool has_shape = work.shape.m > 0 && work.shape.n > 0;
    if (is_gemm(work.kernel) && has_shape) return product_s(work.shape, bytes, rates);
    const double k = as_double(std::max<int64_t>(work.shape.k, 1));
    const double share = is_gemm(work.kernel) ? k / (k + rates.fill_k) : efficiency(work);
    const auto flop = as_double(work.flop);
    return std::max({flop / (flop_per_s(work.type) * share), bytes / bytes_per_s_,
                     rates.s_per_flop * flop + rates.s_per_byte * bytes});
}

/// torch keeps rows of up to 1024 columns in registers. It reads longer ones again, 8 blocks on
/// each multiprocessor: what L2 cannot hold of their rows comes from memory.
double KernelModel::read_again_bytes(const KernelWork& work) const {
    if (work.kernel != KernelKind::kSoftmax || work.columns <= 1024 || work.is_own) return 0;
    const auto bytes = as_double(work.moved_bytes);
    const double rows = sm_count_ * 8 * as_double(work.columns) * (is_16_bit(work.type) ? 2 : 4);
    const double resident = std::min(rows, bytes / 2);
    return resident > l2_bytes_ ? bytes * (1 - l2_bytes_ / resident) : 0;
}

double KernelModel::stream_s(const KernelWork& work) const {
    const auto bytes = as_double(work.moved_bytes);
    if (work.kernel == KernelKind::kHostCopy) return bytes / host_bytes_per_s_;
    const bool is_in_l2 = bytes <= calibration_->l2_share.value * l2_bytes_;
    const double rate = is_in_l2 ? std::max(l2_bytes_per_s_, bytes_per_s_) : bytes_per_s_;
    return bytes / (rate * efficiency(work)) + read_again_bytes(work) / rate;
}

double KernelModel::time_ns(const KernelWork& work) const {
    const bool contracts = is_gemm(work.kernel) || is_attention(work.kernel);
    return (contracts ? contraction_s(work) : stream_s(work)) * kNsPerS + launch_ns();
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
    if (bandwidth_ratio_ > 0) {
        notes.push_back(fmt::format("bandwidth is extrapolated: {} of the specification",
                                    format_share(bandwidth_ratio_)));
    }
    return notes;
}

}  // namespace profiler
