#pragma once

#include "app/prediction/recent.h"
#include "app/prediction/trace_workers.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/plan.h"
#include "profiler/planner/step/batch_interpolation.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Plans and steps of GPUs that are not here, asked for again and again while the user tries things
/// out.
namespace app {

/// One step with several recipes on a GPU.
struct StepPlanRequest {
    models::Workload workload;         // its recipe and batch are ignored
    std::vector<std::string> recipes;  // as text
    std::string gpu;                   // its id
    std::optional<int64_t> batch_size = {};
    bool keeps_traces = true;  // for the next plan; false: it is one of many of a search

    friend bool operator==(const StepPlanRequest&, const StepPlanRequest&) = default;
};

/// Answers from workers that stay. What was asked before is answered at once. Any thread;
/// several may ask at once.
class Predictor {
public:
    /// Knows the GPUs of the program and of the user's folder. What is wrong there is the error of
    /// every answer.
    Predictor();
    ~Predictor() { cancel(); }
    Predictor(const Predictor&) = delete;
    Predictor& operator=(const Predictor&) = delete;

    /// Gets the share of the recipes that are planned, in [0, 1]. Nothing more is traced once it
    /// returns false; what lacks traces is then refused.
    using Report = std::function<bool(double share)>;

    /// It leaves `busy_cores` to other work.
    /// Errors: unknown names, a workload that no recipe can run, errors of the workers.
    models::Result<profiler::Plan> plan(const StepPlanRequest& request, const Report& report = {},
                                        unsigned busy_cores = 0);

    /// The rows of that plan that are known already, in any number. Does not wait.
    profiler::Plan known_plan(const StepPlanRequest& request);

    /// Whether the GPU can run the workload, at any batch. Errors: it cannot, or is not known.
    models::Result<void> check(const models::Workload& workload, const std::string& gpu) const;

    /// The step as its GPU would record it, with its kernels. Errors: as `plan`.
    models::Result<profiler::Trace> predict(const profiler::StepToTrace& step);

    /// By the order of the catalogue.
    const std::vector<profiler::Gpu>& gpus() const { return data_.gpus; }
    const profiler::PlannerData& data() const { return data_; }

    /// How many steps the workers were asked to trace so far.
    std::size_t traces_asked() const {
        return for_plans_.traces_asked() + for_traces_.traces_asked();
    }

    /// What the workers wrote to standard output and error.
    std::string log() const { return for_plans_.log() + for_traces_.log(); }

    /// Ends what runs; nothing is answered after that.
    void cancel();

private:
    using TracePointer = std::shared_ptr<const profiler::Trace>;
    profiler::Plan known_rows(const StepPlanRequest& request, profiler::PlanRequest& plan_request);
    void keep_rows(const StepPlanRequest& request, const profiler::Plan& plan);

    profiler::PlannerData data_;
    std::optional<models::Error> data_error_;
    TraceWorkers for_plans_;
    TraceWorkers for_traces_;

    // Kept by step: the workload with its recipe, and the id of the GPU.

    /// What plans traced; some megabytes each.
    Recent<profiler::StepToTrace, TracePointer> traces_{64};

    /// Rows that fit their GPU; some kilobytes each. They depend on nothing else, while the advice
    /// in other rows depends on the whole plan. A step has a few hundred recipes. The batch of the
    /// key is the one whose figures were asked for; 0: the largest that fits.
    Recent<profiler::StepToTrace, profiler::PlanRow> rows_{1024};
};

}  // namespace app
