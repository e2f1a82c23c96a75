#include "profiler/capture/cuda/launch_recorder.h"

#include "profiler/capture/cuda/activity_join.h"
#include "profiler/capture/cuda/gpu_notes.h"

#include <utility>

namespace profiler {

LaunchRecorder::LaunchRecorder() {
    auto session = CuptiSession::open();
    if (session) {
        cupti_ = std::move(*session);
    } else {
        problem_ = session.error().message;
    }
}

void LaunchRecorder::start() {
    if (!cupti_) return;
    if (const auto ok = cupti_->record_work(); !ok) {
        problem_ = ok.error().message;
        cupti_.reset();
    }
}

void LaunchRecorder::on_op_begin(Id<Op> op) noexcept {
    if (cupti_) cupti_->push_op(external_id_of(op));
}

void LaunchRecorder::on_op_end() noexcept {
    if (cupti_) cupti_->pop_op();
}

void LaunchRecorder::add_to(Trace& trace, StreamRows& streams) {
    ActivityRecords records;
    if (cupti_) records = cupti_->finish();
    add_gpu_notes({.cupti_problem = problem_,
                   .dropped_records = records.dropped_records,
                   .unknown_records = records.unknown_records,
                   .broken_buffers = records.broken_buffers},
                  {}, 0, trace);
    ActivityRecords launches;
    launches.kernels = std::move(records.kernels);
    launches.op_correlations = std::move(records.op_correlations);
    const std::size_t first = trace.kernels.size();
    ActivityJoin join(trace, streams,
                      {.stream_handle = [](uint32_t, uint32_t) { return int64_t{0}; },
                       .api_name = [](ApiDomain, uint32_t) { return std::string(); }});
    join.add(std::move(launches));
    for (std::size_t i = first; i < trace.kernels.size(); ++i) {
        trace.kernels.set<&Kernel::start_ns>(Id<Kernel>(i), -1);
        trace.kernels.set<&Kernel::end_ns>(Id<Kernel>(i), -1);
    }
}

}  // namespace profiler
