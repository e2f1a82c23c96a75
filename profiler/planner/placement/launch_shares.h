#pragma once

#include "profiler/planner/step/kernel_model.h"
#include "profiler/planner/step/op_work.h"
#include "profiler/trace/trace.h"

#include <span>
#include <unordered_map>
#include <vector>

/// How the launches of an op share its time. The model times an op as a whole, and the parameter
/// update as a whole; within that, each part gets time in proportion to a model of its own:
///
///     a counted op inside another op     the time that the model gives to its bytes and flop
///     a launch of no counted op          the time of a launch
///     several launches of one op         their words, where `words_of_kernel` knows them; else
///                                        their threads. In a contraction, what multiplies gets the
///                                        time that its helpers leave, at least half.
namespace profiler {

/// Words that a kernel moves for each element of its op's tensor; 0: not known.
double words_of_kernel(std::string_view kernel);

class LaunchShares {
public:
    /// `works`: the counted ops of a step, also those inside others and in the parameter update.
    /// Borrows trace and model.
    LaunchShares(const Trace& trace, const KernelModel& model, std::span<const OpWork> works);

    /// The modelled time of `op` by itself; 0: it is not counted.
    double time_of(Id<Op> op) const;
    /// One weight for each of the launches, which `op` or ops in it made. Their sum is positive.
    std::vector<double> weights_of(Id<Op> op, std::span<const Id<Kernel>> launches) const;

private:
    Id<Op> counted_op_of(Id<Kernel> launch, Id<Op> around) const;
    void divide(Id<Op> op, std::span<const Id<Kernel>> launches, std::span<const std::size_t> group,
                std::vector<double>& weights) const;

    struct Counted {
        double time_ns = 0;
        bool is_contraction = false;
    };

    const Trace& trace_;
    const KernelModel& model_;
    std::unordered_map<int32_t, Counted> counted_;  // by op
};

}  // namespace profiler
