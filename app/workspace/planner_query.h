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

/// The step and the recipes that the Planner plans.
struct PlannerQuery {
    /// Its recipe is ignored; its batch is where the cursor stands.
    models::Workload workload = first_workload();
    std::vector<std::string> recipes{"original", "tempo", "checkpoint", "flash"};
    models::Optimizer optimizer = models::Optimizer::kAdamW;  // of all recipes
    bool is_chosen = false;  // the user changed it; before that it follows trace A
    bool is_drawn = false;   // the panel has been drawn; before that nothing is planned

    friend bool operator==(const PlannerQuery&, const PlannerQuery&) = default;
};

/// The recipe in its one canonical spelling. Text that names no recipe stays as it is.
std::string canonical_recipe(const std::string& recipe);

/// `query`, or until the user changes it, the step of A.
PlannerQuery shown_query(const PlannerQuery& query, const Selection& selection);

/// The texts of the recipes, with the query's optimizer.
std::vector<std::string> recipe_texts(const PlannerQuery& query);

/// The place in the list of the recipe with this text (recipe_texts); of an unknown one the first.
size_t index_of_recipe(const PlannerQuery& query, const std::string& text);

/// A switch of the recipe `from` led to `to`: a recipe of the user's own becomes that, beside a
/// preset it is added. Returns its place in `recipes`.
size_t switch_recipe(std::vector<std::string>& recipes, size_t from, const std::string& to);

/// Whether the trace ran the step of the query, at any batch and with any recipe.
bool is_step_of(const PlannerQuery& query, const Document& document);

/// The preset that a model began as: of its name, or else of its family.
const models::ModelConfig& preset_of(const models::ModelConfig& model);

/// Another model with its own sizes; head and sequence length change where it needs others.
void set_model(PlannerQuery& query, const models::ModelConfig& model);

/// Without the batch: a plan answers for all batches.
PlanQuestion planner_question(const PlannerQuery& query, const std::string& gpu);

/// "bert-large, 24 layers, S 512, fp32, NVIDIA T4": what a plan was made for, without the batch.
std::string step_label(const PlannerQuery& query, const std::string& gpu);

/// Another width with heads of the same size. Its MLP is four times as wide.
void set_hidden_size(models::ModelConfig& model, int64_t num_heads);

/// The command that prints the same plan: "temposcope plan --model bert-large ...".
std::string plan_command(const PlannerQuery& query, const std::string& gpu);

/// `form` with this step, to be measured; its other fields stay.
StepForm capture_form_of(const PlannerQuery& query, StepForm form);

struct PlannerResult {
    PlanQuestion question;
    profiler::PlannerView view;
    std::string error;  // why there is no view; empty: there is one
};
PlannerResult build_planner(Predictor& predictor, const PlanQuestion& question,
                            const Predictor::Report& report);

}  // namespace app
