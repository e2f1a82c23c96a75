#include "app/commands/worker/built_in_program.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

namespace app {

models::Result<ProgramRun> built_in_program(const models::Workload& workload,
                                            const models::Parallel& parallel, int64_t world_size) {
    const auto ok = models::validate(workload, parallel, world_size);
    if (!ok) return tl::unexpected(ok.error());
    const auto package = find_python_package();
    if (!package) return tl::unexpected(package.error());
    const char* const python = std::getenv("TEMPOSCOPE_PYTHON");
    ProgramRun run{
        .words = {python == nullptr ? "python3" : python},
        // Python would find modules in the current folder first: a user's random.py.
        .variables = {"PYTHONSAFEPATH=1"},
        .steps = 3,  // the second one finds the optimizer's state, the third DDP's buckets
        .skip = 0,
        .stops = true};
    if (world_size > 1) {
        run.words.insert(run.words.end(), {"-m", "torch.distributed.run"});
        run.world_size = world_size;
    }
    const std::string program = (*package / "programs" / "train_built_in.py").string();
    run.words.insert(run.words.end(), {program, models::to_json(workload).dump(), "--parallel",
                                       models::to_text(parallel)});
    return run;
}

}  // namespace app
