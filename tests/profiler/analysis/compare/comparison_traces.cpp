#include "tests/profiler/analysis/compare/comparison_traces.h"

#include <nlohmann/json.hpp>

namespace tests {

std::shared_ptr<const Trace> make_trace(const Spec& spec) {
    models::Workload w;
    w.model = models::find_model("bert-base").value();
    w.recipe_name = spec.recipe;
    w.recipe = models::parse_recipe(spec.recipe).value();
    w.batch_size = spec.batch_size;
    w.gradient_accumulation_steps = spec.micro_batches;
    TraceBuilder b(w);
    b.trace().runs.set<&Run::source>(Id<profiler::Run>(0), spec.source);
    b.trace().runs.set<&Run::memory_limit_bytes>(Id<profiler::Run>(0), spec.memory_limit_bytes);
    if (!spec.turns_run.empty()) {
        const nlohmann::json software{
            {"measured_in_turn", {{"run", spec.turns_run}, {"recipes", 2}}}};
        b.trace().runs.set<&Run::software>(Id<profiler::Run>(0),
                                           b.trace().strings.intern(software.dump()));
    }
    for (const int64_t duration_ns : spec.step_times_ns) {
        b.begin_step(spec.peak_phase);
        const auto op = b.op("aten::addmm");
        const auto kept =
            b.allocate({.bytes = spec.bytes, .category = Category::kActivation, .op = op});
        const auto save = b.save(kept, op);
        b.end_phase();
        b.release(save);
        b.free(kept);
        b.wait(duration_ns - 2 * TraceBuilder::kTickNs);
        b.end_step(0.5);
    }
    for (const auto& [batch_size, times_ns] : spec.sweep) {
        const auto outcome = times_ns.empty() ? SweepOutcome::kOutOfMemory : SweepOutcome::kOk;
        const auto point =
            b.trace().sweep_points.append({.batch_size = batch_size,
                                           .outcome = outcome,
                                           .peak_allocated_bytes = 100 * batch_size});
        for (const int64_t ns : times_ns)
            b.trace().sweep_samples.append({.point = point, .step_time_ns = ns});
    }
    if (!spec.warning.empty()) {
        b.trace().diagnostics.append(
            {.code = b.text(spec.warning), .severity = Severity::kWarning});
    }
    return std::make_shared<const Trace>(b.finish());
}

Comparison compare_two(const Spec& a, const Spec& b) {
    return compare({{"a", make_trace(a)}, {"b", make_trace(b)}}).value();
}

std::vector<std::string> recipes(const Comparison& comparison) {
    std::vector<std::string> names;
    for (const ComparisonColumn& column : comparison.columns) names.push_back(column.recipe);
    return names;
}

}  // namespace tests
