#include "app/panels/planner_controls.h"

#include "app/panels/form_rows.h"
#include "app/panels/gpu_list.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "models/config/switches.h"
#include "profiler/trace/units.h"
#include "profiler/view/planner_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace app {
namespace {

constexpr std::array<int64_t, 12> kSeqLens{32,  64,  128,  192,  256,  384,
                                           512, 768, 1024, 1536, 2048, 4096};
constexpr double kDropoutStep = 0.05;

/// Returns the row that was clicked. `name` is asked for each row of `rows`.
template <typename Rows, typename Name>
const typename Rows::value_type* pick(const char* label, const char* id, const std::string& shown,
                                      const Rows& rows, Name&& name) {
    form_row(label);
    const typename Rows::value_type* picked = nullptr;
    if (!ImGui::BeginCombo(id, shown.c_str(), ImGuiComboFlags_HeightLarge)) return picked;
    for (const auto& row : rows) {
        const std::string text(name(row));
        if (ImGui::Selectable(text.c_str(), text == shown)) picked = &row;
    }
    ImGui::EndCombo();
    return picked;
}

void draw_step_kind(PlannerQuery& query) {
    models::Workload& workload = query.workload;
    const auto same = [](const auto& name) { return name; };
    if (const auto* model = pick("Model", "##model", workload.model.name, models::model_presets(),
                                 [](const auto& one) { return one.name; })) {
        set_model(query, *model);
    }
    if (const auto* head = pick("Head", "##head", std::string(models::name_of(workload.head)),
                                models::kHeadNames, same)) {
        workload.head = models::parse_head(*head).value_or(workload.head);
    }
    if (const auto* precision =
            pick("Precision", "##precision", std::string(models::name_of(workload.precision)),
                 models::kPrecisionNames, same)) {
        workload.precision = models::parse_precision(*precision).value_or(workload.precision);
    }
    if (const auto* row =
            pick("Optimizer", "##optimizer", std::string(models::name_of(query.optimizer)),
                 models::kOptimizerSwitch.rows,
                 [](const auto& one) { return models::name_of(one.value); })) {
        query.optimizer = row->value;
    }
}

/// A slider with its value at its right, where the handle does not cover it.
bool value_slider(const char* label, const char* id, int& value, int first, int last,
                  const std::string& shown, ImGuiSliderFlags flags) {
    form_row(label);
    ImGui::BeginGroup();
    ImGui::SetNextItemWidth(-em(3.4F));
    const bool is_moved =
        ImGui::SliderInt(id, &value, first, last, "", ImGuiSliderFlags_AlwaysClamp | flags);
    ImGui::SameLine(0, px(6));
    ImGui::AlignTextToFramePadding();
    right_text(shown);
    ImGui::EndGroup();
    return is_moved;
}

/// A slider over the usual lengths that the model's positions allow.
void draw_seq_len(models::Workload& workload) {
    int last = 0;
    int nearest = 0;
    for (int i = 0; i < static_cast<int>(kSeqLens.size()); ++i) {
        const int64_t length = kSeqLens[static_cast<size_t>(i)];
        if (length <= workload.model.max_position_embeddings) last = i;
        if (length <= workload.seq_len) nearest = i;
    }
    if (value_slider("Sequence", "##seq", nearest, 0, last,
                     profiler::format_count(workload.seq_len), ImGuiSliderFlags_NoInput)) {
        workload.seq_len = kSeqLens[static_cast<size_t>(nearest)];
    }
}

void draw_sliders(models::Workload& workload, int64_t last_batch) {
    int batch =
        static_cast<int>(std::min<int64_t>(workload.batch_size, profiler::kLargestPlannedBatch));
    const int most =
        static_cast<int>(std::min<int64_t>(last_batch, profiler::kLargestPlannedBatch));
    const ImGuiSliderFlags spread = most > 256 ? ImGuiSliderFlags_Logarithmic : 0;
    if (value_slider("Batch", "##batch", batch, 1, most,
                     profiler::format_count(workload.batch_size), spread)) {
        workload.batch_size = batch;
    }
    draw_seq_len(workload);
    int layers = static_cast<int>(workload.model.num_layers);
    if (value_slider("Layers", "##layers", layers, 1, std::max(48, layers),
                     profiler::format_count(workload.model.num_layers), 0)) {
        workload.model.num_layers = layers;
    }
    int heads = static_cast<int>(std::min<int64_t>(workload.model.num_heads, 1 << 10));
    if (value_slider("Hidden", "##hidden", heads, 2, std::max(40, heads),
                     profiler::format_count(workload.model.hidden_size),
                     ImGuiSliderFlags_NoInput)) {
        set_hidden_size(workload.model, heads);
    }
    ImGui::SetItemTooltip("Hidden size, in steps of one head; the MLP is four times as wide");
    int steps = static_cast<int>(std::lround(workload.model.hidden_dropout_p / kDropoutStep));
    if (value_slider("Dropout", "##dropout", steps, 0, 10,
                     fmt::format("{:.2f}", workload.model.hidden_dropout_p),
                     ImGuiSliderFlags_NoInput)) {
        workload.model.hidden_dropout_p = steps / 20.0;
        workload.model.attention_dropout_p = steps / 20.0;
    }
}

void draw_recipes(std::vector<std::string>& chosen) {
    const std::string preview =
        chosen.size() == 1 ? chosen.front() : fmt::format("{} recipes", chosen.size());
    recipes_row(chosen, preview, [](const models::Recipe&) { return true; });
}

void draw_gpu(const Workspace& workspace, PanelEvents& events) {
    form_row("GPU");
    if (const auto* gpu = gpu_list("##gpu", workspace.gpus(), workspace.plan_choice().gpu)) {
        events.plan_choice = PlanChoice{gpu->id, /*is_chosen=*/true};
    }
}

}  // namespace

void draw_planner_controls(const PanelContext& context, PlannerQuery& query, int64_t last_batch,
                           PanelEvents& events) {
    if (!ImGui::BeginTable("##controls", 2, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, em(5));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    draw_gpu(context.workspace, events);
    draw_recipes(query.recipes);
    draw_sliders(query.workload, last_batch);
    draw_step_kind(query);
    ImGui::EndTable();
}

}  // namespace app
