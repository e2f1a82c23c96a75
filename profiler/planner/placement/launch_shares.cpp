#include "profiler/planner/placement/launch_shares.h"

#include "profiler/trace/units.h"

#include <algorithm>
#include <array>
#include <map>

namespace profiler {
namespace {

struct KnownKernel {
    std::string_view part;  // of its name
    double words = 0;       // for each element of the op's tensor
};
/// Of torch's layer_norm_kernel.cu. Few threads of the second walk down whole columns.
constexpr std::array<KnownKernel, 3> kKnownKernels{{
    {"layer_norm_grad_input", 3},  // dy, x and dx
    {"GammaBetaBackward", 2},      // dy and x
    {"ComputeGradGammaBeta", 2},
}};

constexpr double kLeastShareOfProduct = 0.5;

/// Kernels that only prepare or finish a product.
bool helps_a_product(std::string_view name) {
    constexpr std::array<std::string_view, 6> kHelpers{"flash_bwd_dot_do_o", "flash_bwd_convert_dq",
                                                       "splitKreduce",       "elementwise_kernel",
                                                       "reduce_kernel",      "FillFunctor"};
    return std::ranges::any_of(kHelpers,
                               [&](std::string_view part) { return name.find(part) != name.npos; });
}

}  // namespace

double words_of_kernel(std::string_view kernel) {
    const auto known = std::ranges::find_if(
        kKnownKernels, [&](const KnownKernel& k) { return kernel.find(k.part) != kernel.npos; });
    return known == kKnownKernels.end() ? 0 : known->words;
}

LaunchShares::LaunchShares(const Trace& trace, const KernelModel& model,
                           std::span<const OpWork> works)
    : trace_(trace), model_(model) {
    for (const OpWork& work : works) {
        Counted& counted = counted_[work.op.value];
        counted.time_ns += model.time_ns(work.work);
        counted.is_contraction |= work.op_class == OpClass::kContraction;
    }
}

double LaunchShares::time_of(Id<Op> op) const {
    const auto found = counted_.find(op.value);
    return found == counted_.end() ? 0 : found->second.time_ns;
}

/// The innermost counted op around a launch, up to `around`; invalid: none.
Id<Op> LaunchShares::counted_op_of(Id<Kernel> launch, Id<Op> around) const {
    Id<Op> op = trace_.kernels.get<&Kernel::op>(launch);
    while (op.valid()) {
        if (counted_.contains(op.value)) return op;
        if (op == around) return {};
        op = trace_.ops.get<&Op::parent>(op);
    }
    return {};
}

std::vector<double> LaunchShares::weights_of(Id<Op> op,
                                             std::span<const Id<Kernel>> launches) const {
    std::vector<double> weights(launches.size(), 0.0);
    std::map<Id<Op>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        groups[counted_op_of(launches[i], op)].push_back(i);
    }
    for (const auto& [counted, group] : groups) {
        if (counted.valid()) {
            divide(counted, launches, group, weights);
        } else {
            for (const std::size_t i : group) weights[i] = std::max(model_.launch_ns(), 1.0);
        }
    }
    return weights;
}

/// Divides the time of a counted op among the launches of its group.
void LaunchShares::divide(Id<Op> op, std::span<const Id<Kernel>> launches,
                          std::span<const std::size_t> group, std::vector<double>& weights) const {
    const Counted& counted = counted_.at(op.value);
    const double time_ns = std::max(counted.time_ns, 1.0);
    double left_ns = time_ns, threads = 0, words = 0;
    bool all_words_known = true;
    std::vector<std::size_t> sharing;
    for (const std::size_t i : group) {
        const Kernel kernel = trace_.kernels[launches[i]];
        const std::string_view name = trace_.text(kernel.name);
        if (counted.is_contraction && group.size() > 1 && helps_a_product(name)) {
            weights[i] = model_.launch_ns() +
                         threads_of(kernel) * kBytesOfThread / model_.bytes_per_s() * kNsPerS;
            left_ns -= weights[i];
            continue;
        }
        sharing.push_back(i);
        threads += threads_of(kernel);
        words += words_of_kernel(name);
        all_words_known &= words_of_kernel(name) > 0;
    }
    left_ns = std::max(left_ns, kLeastShareOfProduct * time_ns);
    for (const std::size_t i : sharing) {
        const Kernel kernel = trace_.kernels[launches[i]];
        weights[i] = left_ns * (all_words_known ? words_of_kernel(trace_.text(kernel.name)) / words
                                                : threads_of(kernel) / threads);
    }
}

}  // namespace profiler
