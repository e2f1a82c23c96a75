#include "app/prediction/program_target.h"

#include "app/prediction/virtual_cards.h"
#include "app/user/settings.h"
#include "profiler/planner/placement/program_times.h"
#include "profiler/trace/file/trace_file.h"

namespace app {

models::Result<ProgramTarget> ProgramTarget::find(const std::string& gpu) {
    auto data = profiler::load_planner_data(settings_folder());
    if (!data) return tl::unexpected(data.error());
    const auto target = find_target(*data, gpu, kUsualSetup);
    if (!target) return tl::unexpected(target.error());
    auto card = real_size_card(*target);
    if (!card) return tl::unexpected(card.error());
    ProgramTarget found;
    found.data_ = std::move(*data);
    found.gpu_ = gpu;
    found.card_ = std::move(*card);
    return found;
}

profiler::VirtualCard ProgramTarget::endless_card() const {
    profiler::VirtualCard card = card_;
    card.total_bytes = kEndlessBytes;
    return card;
}

void ProgramTarget::set_link(double bus_bytes_per_s) {
    data_.calibration.links.push_back(
        {.name = "given", .gpus = {gpu_}, .bus_bytes_per_s = {bus_bytes_per_s, "the user"}});
}

models::Result<void> ProgramTarget::model_times(profiler::Trace& trace) const {
    const auto target = find_target(data_, gpu_, kUsualSetup);
    if (!target) return tl::unexpected(target.error());
    return profiler::model_times(trace, *target->gpu, data_.calibration, *target->environment);
}

models::Result<void> ProgramTarget::model_times(const std::string& file) const {
    auto trace = profiler::read_trace(file);
    if (!trace) return tl::unexpected(trace.error());
    const auto ok = model_times(*trace);
    return ok ? profiler::write_trace(*trace, file) : ok;
}

}  // namespace app
