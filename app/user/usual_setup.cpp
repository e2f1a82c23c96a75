#include "app/user/usual_setup.h"

#include "profiler/planner/data/planner_data.h"
#include "profiler/protocol/worker_process.h"

namespace app {

std::string usual_setup() {
    static const std::string usual = [] {
        const auto worker = profiler::find_worker();
        const std::string torch = worker ? profiler::torch_of_worker(*worker) : std::string();
        if (torch.empty()) return std::string(profiler::kUsualSetup);
        std::string newest = profiler::kUsualSetup;
        for (const auto& environment : profiler::built_in_planner_data().environments) {
            const std::string one = environment.torch_to_run();
            if (one == torch) return environment.id;
            if (!one.empty()) newest = environment.id;
        }
        return newest;
    }();
    return usual;
}

std::string torch_for(const profiler::SoftwareEnvironment& environment) {
    return environment.id == usual_setup() ? std::string() : environment.torch_to_run();
}

}  // namespace app
