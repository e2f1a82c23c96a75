#pragma once

#include "app/prediction/predictor.h"
#include "app/workspace/capture_form.h"
#include "app/workspace/selection.h"
#include "models/config/workload.h"
#include "profiler/view/plan/planner_view.h"

#include <cstddef>
#include <string>
#include <vector>

namespace app {

/// What the Planner plans before a trace is open: masked language modelling with BERT-large.
models::Workload first_workload();

/// The step and the recipes that the user set in the Planner.
struct PlannerForm {
    /// Its recipe is ignored; its batch is where the cursor stands.
    models::Workload workload = first_workload();
    std::vector<std::string> recipes{"original", "tempo", "checkpoint", "flash"};
    models::Optimizer optimizer = models::Optimizer::kAdamW;  // of all recipes
    bool is_chosen = false;  // the user changed it; before that it follows trace A
    bool is_drawn = false;   // the panel has been drawn; before that nothing is planned

    friend bool operator==(const PlannerForm&, const PlannerForm&) = default;
};

/// `form`, or until the user changes it, the step of A.
PlannerForm shown_form(const PlannerForm& form, const Selection& selection);

/// Whether there is a step to plan: A ran none of the built-in models, and the user chose none. The
/// plan of another model would answer what nobody asked.
bool plans_nothing(const PlannerForm& form, const Selection& selection);

/// The texts of the recipes, with the form's optimizer.
std::vector<std::string> recipe_texts(const PlannerForm& form);

/// The place in the list of the recipe with this text (recipe_texts); of an unknown one the first.
size_t index_of_recipe(const PlannerForm& form, const std::string& text);

/// A switch of the recipe `from` led to `to`: a recipe of the user's own becomes that, beside a
/// preset it is added. Returns its place in `recipes`.
size_t switch_recipe(std::vector<std::string>& recipes, size_t from, const std::string& to);

/// Whether the trace ran the step of the form, at any batch and with any recipe.
bool is_step_of(const PlannerForm& form, const Document& document);

/// The preset that a model began as: of its name, or else of its family.
const models::ModelConfig& preset_of(const models::ModelConfig& model);

/// Another model with its own sizes; head and sequence length change where it needs others.
void set_model(PlannerForm& form, const models::ModelConfig& model);

/// Without the batch: a plan answers for all batches.
StepPlanRequest planner_request(const PlannerForm& form, const std::string& gpu);

/// "bert-large, 24 layers, S 512, fp32, NVIDIA T4": what a plan was made for, without the batch.
std::string step_label(const PlannerForm& form, const std::string& gpu);

/// Another width with heads of the same size. Its MLP is four times as wide.
void set_hidden_size(models::ModelConfig& model, int64_t num_heads);

/// The command that prints the same plan: "temposcope plan --model bert-large ...".
std::string plan_command(const PlannerForm& form, const std::string& gpu);

/// `form` with this step, to be measured; its other fields stay.
StepForm capture_form_of(const PlannerForm& planned, StepForm form);

struct PlannerResult {
    StepPlanRequest request;
    profiler::PlannerView view;
    std::string error;  // why there is no view; empty: there is one
};
PlannerResult build_planner(Predictor& predictor, const StepPlanRequest& request,
                            const Predictor::Report& report);

}  // namespace app
