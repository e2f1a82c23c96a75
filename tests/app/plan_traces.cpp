#include "tests/app/plan_traces.h"

#include "profiler/trace/file/trace_file.h"
#include "tests/app/program.h"
#include "tests/profiler/planner/toy_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace tests {

void write_plan_traces(const std::string& folder, const std::string& recipe) {
    std::filesystem::create_directories(folder);
    for (const int64_t batch_size : {2, 4}) {
        models::Workload workload = toy_workload(batch_size);
        const models::ModelConfig toy = workload.model;
        workload.model = models::find_model("bert-base").value();
        workload.model.num_layers = toy.num_layers;
        workload.model.hidden_size = toy.hidden_size;
        workload.model.num_heads = toy.num_heads;
        workload.model.intermediate_size = toy.intermediate_size;
        workload.recipe_name = recipe;
        workload.recipe = models::parse_recipe(recipe).value();
        const auto written = profiler::write_trace(
            make_toy_step(workload), fmt::format("{}/{}-{}.tscope", folder, recipe, batch_size));
        ASSERT_TRUE(written) << written.error().message;
    }
}

std::vector<std::string> plan_arguments(const std::string& folder) {
    const std::string step = "--layers 2 --hidden 64 --heads 2 --seq 32 --intermediate 256";
    return words("plan --model bert-base " + step + " --traces " + folder);
}

}  // namespace tests
