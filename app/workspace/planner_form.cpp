#include "app/workspace/planner_form.h"

#include "models/config/layer_recipes.h"
#include "models/config/switches.h"

#include <fmt/format.h>

#include <algorithm>

namespace app {
namespace {

using models::Head;
using models::ModelConfig;

/// The head, or the model's usual one if it does not have that.
Head head_for(const ModelConfig& model, Head head) {
    const auto heads = model.traits().heads;
    if (head == Head::kLayers || heads.empty()) return Head::kLayers;
    return std::find(heads.begin(), heads.end(), head) != heads.end() ? head : heads.front();
}

}  // namespace

std::vector<std::string> recipe_texts(const PlannerForm& form) {
    std::vector<std::string> texts = form.recipes;
    if (form.optimizer == models::Recipe{}.optimizer) return texts;
    for (std::string& text : texts) {  // a preset keeps its name
        text += fmt::format(",optimizer={}", models::name_of(form.optimizer));
    }
    return texts;
}

size_t index_of_recipe(const PlannerForm& form, const std::string& text) {
    const std::vector<std::string> texts = recipe_texts(form);
    const auto found = std::find(texts.begin(), texts.end(), text);
    return found != texts.end() ? static_cast<size_t>(found - texts.begin()) : 0;
}

size_t switch_recipe(std::vector<std::string>& recipes, size_t from, const std::string& to) {
    const auto place = [&](auto at) { return static_cast<size_t>(at - recipes.begin()); };
    const auto old = recipes.begin() + static_cast<std::ptrdiff_t>(from);
    const bool is_own = !models::is_preset(*old);
    const auto known = std::find_if(recipes.begin(), recipes.end(), [&](const std::string& one) {
        return models::canonical_recipe(one) == models::canonical_recipe(to);
    });
    if (known == recipes.end()) {
        if (!is_own) return place(recipes.insert(old + 1, to));
        *old = to;
        return from;
    }
    const size_t at = place(known);
    if (!is_own || at == from) return at;
    recipes.erase(old);
    return at < from ? at : at - 1;
}

bool is_step_of(const PlannerForm& form, const Document& document) {
    if (!document.step) return false;
    models::Workload step = *document.step;
    step.batch_size = form.workload.batch_size;
    step.gradient_accumulation_steps = form.workload.gradient_accumulation_steps;
    return models::comparable(step, form.workload);
}

const ModelConfig& preset_of(const ModelConfig& model) {
    const auto& presets = models::model_presets();
    const auto named = std::find_if(presets.begin(), presets.end(),
                                    [&](const auto& one) { return one.name == model.name; });
    if (named != presets.end()) return *named;
    const auto related = std::find_if(presets.begin(), presets.end(),
                                      [&](const auto& one) { return one.family == model.family; });
    return related != presets.end() ? *related : presets.front();
}

models::Workload first_workload() {
    models::Workload workload{.head = Head::kMlm};
    if (const auto model = models::find_model("bert-large")) workload.model = *model;
    return workload;
}

PlannerForm shown_form(const PlannerForm& form, const Selection& selection) {
    if (form.is_chosen || !selection.a) return form;
    const auto& workload = selection.a->step;
    if (!workload) return form;
    PlannerForm shown = form;
    shown.workload = *workload;
    shown.workload.gradient_accumulation_steps = 1;  // the panels speak of one batch
    shown.optimizer = workload->recipe.optimizer;
    return shown;
}

bool plans_nothing(const PlannerForm& form, const Selection& selection) {
    return !form.is_chosen && selection.a && !selection.a->step;
}

void set_model(PlannerForm& form, const ModelConfig& model) {
    models::Workload& workload = form.workload;
    workload.model = model;
    workload.head = head_for(model, workload.head);
    if (workload.seq_len > model.max_position_embeddings) {
        workload.seq_len = model.max_position_embeddings;
    }
}

std::string step_label(const PlannerForm& form, const std::string& gpu) {
    const models::Workload& workload = form.workload;
    const ModelConfig& model = workload.model;
    std::string text = fmt::format("{}, {} layers", preset_of(model).name, model.num_layers);
    if (model.hidden_size != preset_of(model).hidden_size) {
        text += fmt::format(", hidden {}", model.hidden_size);
    }
    text += fmt::format(", S {}, {}", workload.seq_len, models::name_of(workload.precision));
    if (form.optimizer != models::Recipe{}.optimizer) {
        text += fmt::format(", {}", models::name_of(form.optimizer));
    }
    return fmt::format("{}, {}", text, gpu);
}

void set_hidden_size(ModelConfig& model, int64_t num_heads) {
    const ModelConfig& preset = preset_of(model);
    const int64_t head_dim = std::max<int64_t>(1, preset.head_dim());
    model.num_heads = std::max<int64_t>(1, num_heads);
    model.hidden_size = head_dim * model.num_heads;
    const bool usual = model.hidden_size == preset.hidden_size;
    model.intermediate_size = usual ? preset.intermediate_size : 4 * model.hidden_size;
}

StepPlanRequest planner_request(const PlannerForm& form, const std::string& gpu) {
    StepPlanRequest request{.workload = form.workload, .recipes = recipe_texts(form), .gpu = gpu};
    request.workload.batch_size = 1;
    return request;
}

// ---- the command line: the one place of the window that names options ------------------------

namespace {

std::string model_options(const ModelConfig& model) {
    const ModelConfig& preset = preset_of(model);
    std::string text = fmt::format(" --model {}", preset.name);
    const auto add = [&](const char* option, auto value, auto usual) {
        if (value != usual) text += fmt::format(" {} {}", option, value);
    };
    add("--layers", model.num_layers, preset.num_layers);
    add("--hidden", model.hidden_size, preset.hidden_size);
    add("--heads", model.num_heads, preset.num_heads);
    add("--intermediate", model.intermediate_size, preset.intermediate_size);
    add("--vocab", model.vocab_size, preset.vocab_size);
    add("--dropout", model.hidden_dropout_p, preset.hidden_dropout_p);
    // --dropout sets both, unless the second is given.
    const double usual = model.hidden_dropout_p == preset.hidden_dropout_p
                             ? preset.attention_dropout_p
                             : model.hidden_dropout_p;
    add("--attention-dropout", model.attention_dropout_p, usual);
    return text;
}

/// In a list, switches belong to the name before them, so each recipe begins with a name.
std::string in_list(const std::string& recipe) {
    const bool has_name = recipe.substr(0, recipe.find(',')).find('=') == std::string::npos;
    return has_name ? recipe : "original," + recipe;
}

}  // namespace

std::string plan_command(const PlannerForm& form, const std::string& gpu) {
    const models::Workload& workload = form.workload;
    std::vector<std::string> recipes;
    for (const std::string& recipe : recipe_texts(form)) recipes.push_back(in_list(recipe));
    std::string text = "temposcope plan" + model_options(workload.model);
    text += fmt::format(" --head {} --precision {} --seq {}", models::name_of(workload.head),
                        models::name_of(workload.precision), workload.seq_len);
    if (workload.padding != models::Padding::kNone) text += " --padding random";
    return text + fmt::format(" --recipe {} --gpu {} --batch {}", fmt::join(recipes, ","), gpu,
                              workload.batch_size);
}

StepForm capture_form_of(const PlannerForm& planned, StepForm form) {
    const models::Workload& workload = planned.workload;
    const ModelConfig& model = workload.model;
    const ModelConfig& preset = preset_of(model);
    const auto other_than = [](int64_t preset_size, int64_t size) {
        return size == preset_size ? std::nullopt : std::optional(size);
    };
    form.device = StepForm().device;
    form.model = preset.name;
    form.layers = other_than(preset.num_layers, model.num_layers);
    form.hidden = other_than(preset.hidden_size, model.hidden_size);
    form.heads = other_than(preset.num_heads, model.num_heads);
    form.intermediate = other_than(preset.intermediate_size, model.intermediate_size);
    form.vocab = other_than(preset.vocab_size, model.vocab_size);
    form.attention_dropout = model.attention_dropout_p > 0;
    form.hidden_dropout = model.hidden_dropout_p > 0;
    set_random_lengths(form, workload.padding == models::Padding::kRandom);
    form.head = models::name_of(workload.head);
    form.precision = models::name_of(workload.precision);
    form.batch_size = workload.batch_size;
    form.seq_len = workload.seq_len;
    form.recipes.names = recipe_texts(planned);
    return form;
}

PlannerResult build_planner(Predictor& predictor, const StepPlanRequest& request,
                            const Predictor::Report& report) {
    const auto plan = predictor.plan(request, report);
    if (!plan) return {request, {}, plan.error().message};
    return {request, profiler::build_planner_view(*plan), {}};
}

}  // namespace app
