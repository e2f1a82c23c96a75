#include "app/panels/plan/planner_panel.h"

#include "app/panels/parts/form_rows.h"
#include "app/panels/parts/layer_switches.h"
#include "app/panels/plan/planner_plots.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "models/config/layer_recipes.h"
#include "models/config/switches.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/units.h"
#include "profiler/view/plan/recipe_frontier_view.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace app {
namespace {

using profiler::PlanFigures;
using profiler::PlannerPin;
using profiler::PlannerReading;
using profiler::PlannerRecipe;
using profiler::PlannerView;

constexpr float kControlsWidth_em = 17;
constexpr float kFiguresWidth_em = 28;
constexpr std::array<int64_t, 12> kSeqLens{32,  64,  128,  192,  256,  384,
                                           512, 768, 1024, 1536, 2048, 4096};
constexpr double kDropoutStep = 0.05;

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    PlannerState& state;
    PlannerForm form;  // as shown; changed by the controls
    PanelEvents& events;
    bool is_planning = false;
    std::vector<size_t> colors{};  // of the view's recipes, for recipe_color
};

const PlannerView* view_of(const Frame& frame) {
    return frame.state.shown ? &frame.state.shown->view : nullptr;
}

size_t focus_of(const Frame& frame, const PlannerView& view) {
    for (const std::string& focus : {frame.state.focus, frame.state.focus_before}) {
        for (size_t i = 0; i < view.recipes.size(); ++i) {
            if (view.recipes[i].name() == focus) return i;
        }
    }
    return 0;
}

// ---- figures --------------------------------------------------------------------------------

/// Of the recipes and of the pins: title and share of the width; before them stands the recipe.
constexpr std::array<std::pair<const char*, float>, 4> kFigureColumns{
    {{profiler::kLargestBatch, 1.75F},
     {profiler::kPeakOnGpu, 2.15F},
     {"Step", 1.05F},
     {"Seq/s", 0.85F}}};

bool begin_figures(const char* id, ImGuiTableFlags flags) {
    constexpr int kNumColumns = 1 + static_cast<int>(kFigureColumns.size());
    if (!ImGui::BeginTable(id, kNumColumns, ImGuiTableFlags_SizingStretchProp | flags))
        return false;
    ImGui::TableSetupColumn("Recipe", 0, 2.05F);
    for (const auto& [title, share] : kFigureColumns) ImGui::TableSetupColumn(title, 0, share);
    return true;
}

/// At the right of the recipe.
void draw_figure_cells(const PlanFigures& figures) {
    for (const std::string* value :
         {&figures.max_batch_text, &figures.memory_text, &figures.step_text, &figures.rate_text}) {
        ImGui::TableNextColumn();
        const ScopedColor ink(ImGuiCol_Text, value->empty() ? palette().dim : palette().text);
        right_text(profiler::or_no_value(*value));
    }
}

void draw_row(Frame& frame, const PlannerView& view, size_t index) {
    const PlannerRecipe& recipe = view.recipes[index];
    const PlanFigures figures = profiler::planner_figures(recipe, frame.form.workload.batch_size);
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (ImGui::Selectable("###row", index == focus_of(frame, view),
                          ImGuiSelectableFlags_SpanAllColumns)) {
        frame.state.focus = recipe.name();
    }
    const bool is_hovered = ImGui::IsItemHovered();
    ImGui::SameLine(0, 0);
    swatch(recipe_color(frame.colors[index]));
    const float mark = figures.fits ? 0 : em(1.3F);
    const std::string shown = fit_to(recipe.name(), ImGui::GetContentRegionAvail().x - mark);
    text(shown);
    std::string details = shown == recipe.name() ? "" : recipe.name();
    for (const std::string& why : {figures.why, profiler::other_limit_text(recipe.row)}) {
        if (!why.empty()) details += (details.empty() ? "" : "\n") + why;
    }
    if (is_hovered && !details.empty()) ImGui::SetTooltip("%s", details.c_str());
    if (!figures.fits) {
        ImGui::SameLine(0, px(5));
        colored_text(palette().bad, ICON_TRIANGLE_EXCLAMATION);
    }
    draw_figure_cells(figures);
}

void draw_table(Frame& frame, const PlannerView& view) {
    {
        const ScopedFont small(fonts().text, kSmallSize);
        const ScopedColor dim(ImGuiCol_Text, palette().dim);
        right_text(fmt::format("peak, step and rate at batch {}", frame.form.workload.batch_size));
    }
    if (!begin_figures("##recipes", ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH)) return;
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    ImGui::TableNextColumn();
    ImGui::TableHeader("Recipe");
    for (const auto& [title, share] : kFigureColumns) {
        ImGui::TableNextColumn();
        right_text(title);
    }
    for (size_t i = 0; i < view.recipes.size(); ++i) draw_row(frame, view, i);
    ImGui::EndTable();
}

/// Of a part without tensors: gaps are paler than the context.
ImU32 other_color(const profiler::PlannerPart& part) {
    return with_alpha(palette().dim, part.is_gap ? 0.35F : 0.75F);
}

/// The bar spans the GPU's memory, or what the step needs if that is more.
void draw_gauge_bar(const PlannerView& view, const PlannerReading& reading) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 size{ImGui::GetContentRegionAvail().x, em(1.5F)};
    const auto usable = static_cast<float>(view.usable_bytes);
    const float whole = std::max({usable, static_cast<float>(reading.figures.needed_bytes), 1.0F});
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, palette().plot, px(3));
    float left = corner.x;
    for (const profiler::PlannerPart& part : reading.parts) {
        const float right = left + size.x * static_cast<float>(part.bytes) / whole;
        const ImVec2 lower_right{right, corner.y + size.y};
        if (part.category) {
            fill_category(draw, {left, corner.y}, lower_right, *part.category, 0.95F, px(6));
        } else {
            draw->AddRectFilled({left, corner.y}, lower_right, other_color(part));
        }
        left = right;
    }
    const ImU32 color = reading.figures.fits ? palette().border : palette().bad;
    draw->AddRect(corner, {corner.x + size.x, corner.y + size.y}, color, px(3), px(1));
    const float limit = corner.x + size.x * usable / whole;
    if (limit < corner.x + size.x - px(1)) {
        draw->AddLine({limit, corner.y - px(3)}, {limit, corner.y + size.y + px(3)}, palette().text,
                      px(2));
    }
    ImGui::Dummy(size);
}

void draw_gauge_parts(const PlannerReading& reading) {
    if (!ImGui::BeginTable("##parts", 2, ImGuiTableFlags_SizingStretchProp)) return;
    for (auto part = reading.parts.rbegin(); part != reading.parts.rend(); ++part) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        part->category ? category_swatch(*part->category) : swatch(other_color(*part));
        text(part->label);
        ImGui::TableNextColumn();
        right_text(profiler::format_bytes(part->bytes));
    }
    ImGui::EndTable();
}

/// Buttons that change the batch, or show the recipe that fits it.
void draw_fixes(Frame& frame, const PlannerView& view, const PlannerReading& reading) {
    if (reading.fixes.empty()) return;
    dim_text(reading.fixes.size() == 1 ? "The change that fits" : "The smallest changes that fit");
    for (size_t i = 0; i < reading.fixes.size(); ++i) {
        const profiler::PlannerFix& fix = reading.fixes[i];
        const ScopedId id(static_cast<int>(i));
        const std::string label =
            fit_to(fix.text, ImGui::GetContentRegionAvail().x - px(16)) + "###fix";
        if (!ImGui::Button(label.c_str(), {-1, 0})) continue;
        if (fix.recipe) frame.state.focus = view.recipes[*fix.recipe].name();
        if (!fix.batch_size) continue;
        frame.form.workload.batch_size = *fix.batch_size;
        frame.form.is_chosen = true;
    }
    ImGui::Dummy({0, px(2)});
}

void draw_gauge(Frame& frame, const PlannerView& view) {
    if (view.recipes.empty()) return;
    const size_t focus = focus_of(frame, view);
    const PlannerReading reading =
        profiler::read_planner(view, focus, frame.form.workload.batch_size);
    bold_text(view.recipes[focus].name());
    ImGui::SameLine(0, px(6));
    dim_text(fmt::format("at batch {}", frame.form.workload.batch_size));
    if (!reading.parts.empty()) {
        ImGui::SameLine();
        const ScopedFont bold(fonts().bold);
        const ScopedColor ink(ImGuiCol_Text, reading.figures.fits ? palette().text : palette().bad);
        right_text(reading.gauge_text);
        draw_gauge_bar(view, reading);
    }
    if (!reading.figures.why.empty()) {
        warning_note(palette().bad, reading.figures.why);
    } else if (const auto limit = profiler::other_limit_text(view.recipes[focus].row);
               !limit.empty()) {
        note_text(limit);
    }
    draw_fixes(frame, view, reading);
    if (!reading.parts.empty()) draw_gauge_parts(reading);
}

void draw_pin_button(Frame& frame, const PlannerView& view) {
    if (view.recipes.empty()) return;
    auto& pins = frame.state.pins;
    const size_t focus = focus_of(frame, view);
    const bool full = pins.size() >= profiler::kMostPins;
    {
        const ScopedDisabled disabled(full || frame.is_planning);
        const std::string label =
            fmt::format(ICON_THUMBTACK "  Pin {}###pin", view.recipes[focus].name());
        if (ImGui::Button(label.c_str())) {
            const int64_t batch = frame.form.workload.batch_size;
            pins.push_back(profiler::pin_of(view, focus, batch, step_label(frame.form, view.gpu)));
        }
    }
    const char* tooltip = full ? "Four are pinned: remove one first"
                               : "Keep its curves and figures while you change the step";
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) ImGui::SetTooltip("%s", tooltip);
}

void draw_pin(size_t index, const PlannerPin& pin) {
    if (!begin_figures("##pin", 0)) return;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string number = std::to_string(index + 1);
    dim_text(number);
    ImGui::SameLine(0, px(6));
    text(fit_to(pin.recipe.name(), ImGui::GetContentRegionAvail().x));
    draw_figure_cells(pin.figures);
    ImGui::EndTable();
}

/// What the pin was planned for, below its row. Returns true when the pin is to be removed.
bool draw_detail(const PlannerPin& pin) {
    const ScopedFont small(fonts().text, kSmallSize);
    const std::string text = fmt::format("batch {}, {}", pin.batch_size, pin.detail);
    const bool removed = ImGui::SmallButton(ICON_XMARK "###unpin");
    ImGui::SetItemTooltip("Remove this pin");
    ImGui::SameLine(0, px(6));
    dim_text(fit_to(text, ImGui::GetContentRegionAvail().x));
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
    return removed;
}

/// A compact table of the pinned plans with their figures; each row can be removed.
void draw_pins(std::vector<PlannerPin>& pins) {
    std::optional<size_t> removed;
    for (size_t i = 0; i < pins.size(); ++i) {
        const ScopedId id(static_cast<int>(i));
        draw_pin(i, pins[i]);
        if (draw_detail(pins[i])) removed = i;
    }
    if (removed) pins.erase(pins.begin() + static_cast<std::ptrdiff_t>(*removed));
}

void draw_figures(Frame& frame, const PlannerView& view) {
    draw_table(frame, view);
    draw_pin_button(frame, view);
    draw_pins(frame.state.pins);
    ImGui::Dummy({0, px(6)});
    draw_gauge(frame, view);
}

// ---- the step -------------------------------------------------------------------------------

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

void draw_step_kind(PlannerForm& form) {
    models::Workload& workload = form.workload;
    const auto same = [](const auto& name) { return name; };
    if (const auto* model = pick("Model", "##model", workload.model.name, models::model_presets(),
                                 [](const auto& one) { return one.name; })) {
        set_model(form, *model);
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
            pick("Optimizer", "##optimizer", std::string(models::name_of(form.optimizer)),
                 models::kOptimizerSwitch.rows,
                 [](const auto& one) { return models::name_of(one.value); })) {
        form.optimizer = row->value;
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

void draw_gpu(Frame& frame) {
    const Workspace& workspace = frame.context.workspace;
    form_row("GPU");
    if (const auto* gpu = gpu_list("##gpu", workspace.gpus(), workspace.queries().plan.gpu)) {
        frame.events.queries.plan = GpuForm{gpu->id, /*is_chosen=*/true};
    }
}

void draw_step(Frame& frame, int64_t last_batch) {
    PlannerForm& form = frame.form;
    if (!ImGui::BeginTable("##controls", 2, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, em(5));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    draw_gpu(frame);
    draw_recipes(form.recipes);
    draw_sliders(form.workload, last_batch);
    draw_step_kind(form);
    ImGui::EndTable();
}

// ---- controls and buttons -------------------------------------------------------------------

void draw_buttons(Frame& frame) {
    const std::string& gpu = frame.context.workspace.queries().plan.gpu;
    if (ImGui::Button(ICON_RECORD "  Capture this###capture_this")) {
        frame.events.capture.fill = frame.form;
    }
    ImGui::SetItemTooltip("Put this step into the Capture panel");
    ImGui::SameLine(0, px(5));
    if (ImGui::Button(ICON_COPY "###copy_command")) {
        ImGui::SetClipboardText(plan_command(frame.form, gpu).c_str());
    }
    ImGui::SetItemTooltip("Copy as a command:\n%s", plan_command(frame.form, gpu).c_str());
    const bool can_follow =
        frame.form.is_chosen && frame.context.workspace.selection().a != nullptr;
    ImGui::SameLine(0, px(5));
    const ScopedDisabled nothing(!can_follow);
    if (ImGui::Button(ICON_ROTATE_LEFT "###follow_a")) frame.form.is_chosen = false;
    ImGui::SetItemTooltip("Plan the step of trace A");
}

void draw_status(Frame& frame, const PlannerView* view) {
    if (frame.context.workspace.slots().planner.is_cancelled()) {
        frame.events.recipes.plan_again = ImGui::SmallButton("Plan###plan_again");
        return;
    }
    if (frame.is_planning) return dim_text("planning ...");
    if (!view) return;
    dim_text("predicted");
    std::string notes =
        "Memory is simulated at a few batches and interpolated between them. "
        "Cached memory is not counted.";
    for (const std::string& note : view->notes) notes += "\n· " + note;
    ImGui::SameLine(0, px(6));
    help_marker(notes);
}

/// The switches of the recipe in focus. What they lead to is planned, and if A ran this step, shown
/// as B.
void draw_switches(Frame& frame) {
    PlannerForm& form = frame.form;
    if (form.recipes.empty()) return;
    const size_t focus = index_of_recipe(form, frame.state.focus);
    const auto workload = models::with_recipe(form.workload, form.recipes[focus]);
    if (!workload) return;
    const int64_t middle = workload->model.num_layers / 2;
    ImGui::Dummy({0, px(6)});
    bold_text(fit_to(form.recipes[focus], ImGui::GetContentRegionAvail().x));
    const PlannerView* view = view_of(frame);
    const size_t shown = view && !view->recipes.empty() ? focus_of(frame, *view) : 0;
    const SwitchColors colors{.a = shown < (view ? view->recipes.size() : 0)
                                       ? recipe_color(frame.colors[shown])
                                       : palette().accent,
                              .with_letters = false};
    const auto rows = profiler::recipe_switches(*workload, nullptr, middle);
    const auto* const option = draw_recipe_switches(rows, colors, {});
    if (option == nullptr) return;
    const size_t switched = switch_recipe(form.recipes, focus, option->recipe);
    frame.state.focus_before = std::exchange(frame.state.focus, recipe_texts(form)[switched]);
    const DocumentPtr& a = frame.context.workspace.selection().a;
    if (a && is_step_of(form, *a)) {
        frame.events.recipes.try_recipe = models::with_optimizer_of(option->recipe, form.optimizer);
    }
}

/// The controls change the form of the next frame.
void draw_controls(Frame& frame) {
    const PlannerView* view = view_of(frame);
    const int64_t last = view ? view->axes.last_batch : 64;
    const PlannerForm before = frame.form;
    draw_step(frame, last);
    if (frame.form != before) frame.form.is_chosen = true;
    ImGui::Dummy({0, px(3)});
    draw_buttons(frame);
    draw_status(frame, view);
    draw_switches(frame);
}

// ---- the picture ----------------------------------------------------------------------------

void draw_plots(Frame& frame, const PlannerView& view, ImVec2 size) {
    if (view.recipes.empty()) return;
    const PlannerOverlay overlay{frame.form.workload.batch_size,
                                 view.recipes[focus_of(frame, view)].name(), frame.state.pins,
                                 frame.colors};
    if (const auto batch = draw_planner_plots(view, overlay, size)) {
        if (*batch == frame.form.workload.batch_size) return;
        frame.form.workload.batch_size = *batch;
        frame.form.is_chosen = true;
    }
}

void draw_picture(Frame& frame, const std::string& error) {
    const PlannerView* view = view_of(frame);
    if (!error.empty()) {
        empty_state(ICON_TRIANGLE_EXCLAMATION, "The step cannot be planned", error);
        return;
    }
    if (!view) return working_line("Planning the recipes ...");
    const ImVec2 space = ImGui::GetContentRegionAvail();
    if (space.x > em(kFiguresWidth_em + 22)) {
        const float gap = px(14);
        draw_plots(frame, *view, {space.x - em(kFiguresWidth_em) - gap, space.y});
        ImGui::SameLine(0, gap);
        const ScopedChild figures("##figures", {em(kFiguresWidth_em), 0});
        if (figures) draw_figures(frame, *view);
        return;
    }
    draw_plots(frame, *view, {space.x, std::max(em(17), space.y * 0.62F)});
    draw_figures(frame, *view);
}

/// Takes the newest plan. Returns why there is none.
std::string take_plan(const Workspace& workspace, PlannerState& state) {
    const auto& slot = workspace.slots().planner;
    if (!slot.error().empty()) return slot.error();
    const auto newest = slot.shared();
    if (!newest) return {};
    if (newest->error.empty() && newest != state.taken) state.shown = newest;
    state.taken = newest;
    return newest->error;
}

}  // namespace

PanelEvents draw_planner_panel(const PanelContext& context, PlannerState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    if (plans_nothing(workspace.queries().planner, workspace.selection())) {
        state.shown = state.taken = nullptr;
        draw_nothing_planned(workspace, events);
        return events;
    }
    const std::string error = take_plan(workspace, state);
    Frame frame{context, state, shown_form(workspace.queries().planner, workspace.selection()),
                events};
    frame.form.is_drawn |= !ImGui::IsWindowAppearing();  // in its first frame each tab is drawn
    if (const PlannerView* view = view_of(frame)) {
        std::vector<std::string> names;
        for (const PlannerRecipe& recipe : view->recipes) names.push_back(recipe.name());
        frame.colors = workspace.colors_of(names);
    }
    events.recipes.predicts_ahead = true;
    const PlannerResult* newest = workspace.slots().planner.view();
    frame.is_planning =
        error.empty() &&
        (!newest || newest->request != planner_request(frame.form, workspace.queries().plan.gpu));
    {
        const ScopedChild left("##controls", {em(kControlsWidth_em), 0});
        if (left) draw_controls(frame);
    }
    ImGui::SameLine(0, px(14));
    {
        const ScopedChild right("##picture", {0, 0});
        if (right) draw_picture(frame, error);
    }
    if (frame.form != workspace.queries().planner) events.queries.planner = frame.form;
    return events;
}

}  // namespace app
