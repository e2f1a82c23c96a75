#include "profiler/planner/placement/program_times.h"

#include "profiler/planner/placement/kernel_schedule.h"
#include "profiler/planner/step/step_time.h"
#include "profiler/planner/step/step_work.h"

#include <algorithm>
#include <map>
#include <vector>

namespace profiler {
namespace {

/// The starts and ends of steps and phases.
std::vector<int64_t> borders_of(const Trace& trace) {
    std::vector<int64_t> times;
    for (const Id<Step> id : trace.steps.ids()) {
        times.push_back(trace.steps.get<&Step::start_ns>(id));
        times.push_back(trace.steps.get<&Step::end_ns>(id));
    }
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        times.push_back(trace.phases.get<&Phase::start_ns>(Id<Phase>(i)));
        times.push_back(trace.phases.get<&Phase::end_ns>(Id<Phase>(i)));
    }
    return times;
}

/// From one clock to another: linear between the borders that both know, constant after the last.
class ClockMap {
public:
    ClockMap(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
        for (std::size_t i = 0; i < from.size(); ++i) to_.try_emplace(from[i], to[i]);
    }

    int64_t operator()(int64_t time_ns) const {
        const auto after = to_.lower_bound(time_ns);
        if (after == to_.end()) return to_.rbegin()->second;
        if (after == to_.begin()) return std::min(time_ns, after->second);
        const auto& [from, to] = *std::prev(after);
        const auto share =
            static_cast<double>(time_ns - from) / static_cast<double>(after->first - from);
        return to + whole_ns(share * static_cast<double>(after->second - to));
    }

private:
    std::map<int64_t, int64_t> to_{{0, 0}};
};

/// What was sampled, marked or copied outside of ops stays between the same borders.
void move_other_rows(Trace& trace, const ClockMap& map, const std::vector<int64_t>& copied_ns) {
    for (const Id<Memcpy> row : trace.memcpys.ids()) {
        if (trace.memcpys.get<&Memcpy::op>(row).valid()) continue;
        const int64_t time_ns = map(copied_ns[row.index()]);
        trace.memcpys.set<&Memcpy::start_ns>(row, time_ns);
        trace.memcpys.set<&Memcpy::end_ns>(row, time_ns);
    }
    for (const Id<Counter> row : trace.counters.ids()) {
        trace.counters.set<&Counter::time_ns>(row, map(trace.counters.get<&Counter::time_ns>(row)));
    }
    for (const Id<Annotation> id : trace.annotations.ids()) {
        const Annotation old = trace.annotations[id];
        trace.annotations.set<&Annotation::start_ns>(id, map(old.start_ns));
        trace.annotations.set<&Annotation::end_ns>(id, map(old.end_ns));
    }
    trace.apis = {};
}

/// A collective lasts as long as its kernel, or as its call.
void move_collectives(Trace& trace) {
    for (const Id<Collective> row : trace.collectives.ids()) {
        const Id<Kernel> kernel = trace.collectives.get<&Collective::kernel>(row);
        const Id<Op> op = trace.collectives.get<&Collective::op>(row);
        trace.collectives.set<&Collective::start_ns>(
            row, kernel.valid() ? trace.kernels.get<&Kernel::start_ns>(kernel)
                                : trace.ops.get<&Op::start_ns>(op));
        trace.collectives.set<&Collective::end_ns>(
            row, kernel.valid() ? trace.kernels.get<&Kernel::end_ns>(kernel)
                                : trace.ops.get<&Op::end_ns>(op));
    }
}

}  // namespace

models::Result<void> model_times(Trace& trace, const Gpu& gpu, const Calibration& calibration,
                                 const SoftwareEnvironment& environment) {
    if (!gpu.no_kernel_model.empty()) {
        return models::fail("The times of {} are not modelled: {}.", gpu.name, gpu.no_kernel_model);
    }
    const auto work = step_work_of(trace);
    if (!work) return tl::unexpected(work.error());
    const std::vector<int64_t> measured = borders_of(trace);
    const auto copies = trace.memcpys.column<&Memcpy::start_ns>();
    const std::vector<int64_t> copied_ns(copies.begin(), copies.end());
    add_modelled_times(trace, *work, time_model_of_program(gpu, environment, calibration));
    move_other_rows(trace, ClockMap(measured, borders_of(trace)), copied_ns);
    move_collectives(trace);
    return {};
}

}  // namespace profiler
