#include "app/panels/run/capture_panel.h"

#include "app/panels/parts/form_rows.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/imgui_canvas.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "models/config/model_config.h"
#include "models/config/precision.h"
#include "models/config/recipe.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <utility>

namespace app {
namespace {

constexpr float kFormWidth_em = 21;

template <typename Names>
void choice(const char* label, const char* id, std::string& value, const Names& names) {
    form_row(label);
    if (!ImGui::BeginCombo(id, value.c_str())) return;
    for (const auto& name : names) {
        const std::string text(name);
        if (ImGui::Selectable(text.c_str(), text == value)) value = text;
    }
    ImGui::EndCombo();
}

void number(const char* label, const char* id, int64_t& value, int64_t least) {
    form_row(label);
    const int64_t step = 1;
    ImGui::InputScalar(id, ImGuiDataType_S64, &value, &step);
    value = std::max(value, least);
}

/// This computer, or a GPU that need not be here.
void device(StepForm& form, const std::vector<profiler::Gpu>& gpus) {
    const std::string kHere = "This computer";
    const auto id_of = [](const profiler::Gpu& gpu) { return "predict:" + gpu.id; };
    const auto known = std::find_if(gpus.begin(), gpus.end(),
                                    [&](const auto& gpu) { return id_of(gpu) == form.device; });
    form_row("Device");
    const std::string shown = !form.predicts()      ? kHere
                              : known != gpus.end() ? known->name + ", predicted"
                                                    : form.device;
    if (!ImGui::BeginCombo("##device", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
    if (ImGui::Selectable(kHere.c_str(), !form.predicts())) form.device = StepForm().device;
    ImGui::SeparatorText("Predicted, without the GPU");
    const std::string_view chosen = known != gpus.end() ? std::string_view(known->id) : "";
    if (const auto* gpu = gpu_rows(gpus, chosen)) form.device = id_of(*gpu);
    ImGui::EndCombo();
}

void recipes(StepForm& form) {
    std::vector<std::string>& names = form.recipes.names;
    const std::string preview = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
    const auto any = [](const models::Recipe&) { return true; };
    form.predicts() ? recipes_row(names, preview, any)
                    : recipes_row(names, preview, models::runs_on_cpu);
}

/// What a prediction has no use for: it records one step, and the GPU has its own memory.
void measurement(StepForm& form) {
    const ScopedDisabled predicted(form.predicts());
    number("Steps", "##steps", form.steps, 1);
    form_row("Memory limit");
    ImGui::InputTextWithHint("##limit", "none, or 16GiB", &form.memory_limit);
    form_row("Sweep");
    check_box("find the largest batch", &form.sweeps);
    ImGui::SetItemTooltip(
        "After the recorded steps, trains batches of 1, 2, 4, ... until one runs out of memory.\n"
        "The Planner predicts the largest batch of a GPU.");
}

std::vector<std::string> model_names() {
    std::vector<std::string> names;
    for (const models::ModelConfig& model : models::model_presets()) names.push_back(model.name);
    return names;
}

void drop_sizes(StepForm& form) {
    for (auto* size : {&form.hidden, &form.heads, &form.intermediate, &form.vocab}) size->reset();
}

/// The sizes that the step from the Planner has instead of the model's, and a button to drop them.
void sizes(StepForm& form) {
    const std::array<std::pair<const char*, std::optional<int64_t>>, 4> named{
        {{"hidden", form.hidden},
         {"heads", form.heads},
         {"MLP", form.intermediate},
         {"vocabulary", form.vocab}}};
    std::vector<std::string> texts;
    for (const auto& [name, size] : named) {
        if (size) texts.push_back(fmt::format("{} {}", name, *size));
    }
    if (texts.empty()) return;
    form_row("Sizes");
    ImGui::AlignTextToFramePadding();
    if (ImGui::Button(ICON_ROTATE_LEFT "###own_sizes")) drop_sizes(form);
    ImGui::SetItemTooltip("Take the model's own sizes");
    ImGui::SameLine(0, px(6));
    text(fmt::format("{}", fmt::join(texts, ", ")));
}

void draw_form(StepForm& form, const std::vector<profiler::Gpu>& gpus) {
    if (!ImGui::BeginTable("##form", 2, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, em(6));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    device(form, gpus);
    const std::string model = form.model;
    choice("Model", "##model", form.model, model_names());
    if (form.model != model) drop_sizes(form);  // they were those of another model
    int64_t layers = form.layers.value_or(0);
    number("Layers", "##layers", layers, 0);
    form.layers = layers == 0 ? std::nullopt : std::optional(layers);
    ImGui::SetItemTooltip("0 means all layers of the model");
    sizes(form);
    choice("Head", "##head", form.head, models::kHeadNames);
    recipes(form);
    number("Batch", "##batch", form.batch_size, 1);
    number("Sequence", "##seq", form.seq_len, 1);
    choice("Precision", "##precision", form.precision, models::kPrecisionNames);
    form_row("Dropout");
    check_box("of attention", &form.attention_dropout);
    ImGui::SetItemTooltip(
        "Flash attention on the CPU of this computer needs it off; on a GPU it does not.");
    ImGui::SameLine(0, px(12));
    check_box("elsewhere", &form.hidden_dropout);
    form_row("Padding");
    bool random_lengths = has_random_lengths(form);
    if (check_box("random lengths", &random_lengths)) set_random_lengths(form, random_lengths);
    ImGui::SetItemTooltip("Sequences of random lengths, padded to the longest");
    measurement(form);
    form_row("Folder");
    ImGui::InputText("##folder", &form.output);
    ImGui::EndTable();
}

/// Says below the form why it cannot start, as soon as it is filled in wrongly.
void check_form(const Workspace& workspace, CaptureState& state) {
    if (state.checked == state.form) return;
    state.checked = state.form;
    state.problem = workspace.problem_of(state.form);
}

float buttons_height(const CaptureStatus& status, const CaptureState& state) {
    const float spacing = ImGui::GetStyle().ItemSpacing.y;
    const float button = ImGui::GetFrameHeight() + spacing;
    if (status.running || state.problem.empty()) return button;
    const float width = ImGui::GetContentRegionAvail().x - em(2);
    return button + spacing + ImGui::CalcTextSize(state.problem.c_str(), nullptr, false, width).y;
}

void draw_buttons(const CaptureStatus& status, CaptureState& state, PanelEvents& events) {
    if (status.running) {
        const ScopedDisabled ending(status.cancelling);
        if (ImGui::Button(status.cancelling ? "Cancelling###cancel" : ICON_STOP "  Cancel###cancel",
                          {em(9), 0})) {
            events.capture.cancel = true;
        }
        return;
    }
    if (!state.problem.empty()) warning_note(palette().bad, state.problem);
    const ScopedDisabled impossible(!state.problem.empty());
    const ScopedColor button(ImGuiCol_Button, with_alpha(palette().accent, 0.85F));
    const ScopedColor hovered(ImGuiCol_ButtonHovered, palette().accent);
    const ScopedColor label(ImGuiCol_Text, palette().dark ? palette().plot : palette().panel);
    const ScopedFont bold(fonts().bold);
    if (ImGui::Button(ICON_PLAY "  Start###start", {em(9), 0})) events.capture.start = state.form;
}

void draw_progress(const CaptureStatus& status) {
    if (status.running && !status.curves.empty()) {
        const LiveCurve& live = status.curves[status.live];
        bold_text(live.recipe);
        ImGui::SameLine(0, px(8));
        std::string what = live.stage;
        if (!status.phase.empty()) what += "  ·  " + status.phase;
        if (status.recipe_count > 1) {
            what += fmt::format("  ·  recipe {} of {}", status.live + 1, status.recipe_count);
        }
        dim_text(what);
    } else if (!status.error.empty()) {
        warning_note(palette().bad, status.error);
    } else {
        bold_text("Finished");
    }
    ImGui::ProgressBar(static_cast<float>(status.share), {-1, px(6)}, "");
}

/// As in the comparison that follows.
std::vector<size_t> curve_colors(const CaptureStatus& status) {
    std::vector<std::string> recipes;
    for (const LiveCurve& curve : status.curves) recipes.push_back(curve.recipe);
    return profiler::recipe_color_indices(recipes);
}

/// Where memory ran out: at the end of the curve; of one that has not begun, at the limit.
void draw_end_of_memory(const LiveCurve& curve, double limit) {
    if (curve.out_of_memory.empty()) return;
    const ImVec2 end = curve.time_ns.empty() ? ImPlot::PlotToPixels(0, limit)
                                             : ImPlot::PlotToPixels(curve.time_ns.back(),
                                                                    curve.allocated_bytes.back());
    draw_marker(ImPlot::GetPlotDrawList(), profiler::Marker::kCross, end, px(5),
                current_theme().bad);
}

void draw_live_curve(const CaptureStatus& status, float height) {
    double end_ns = 0, peak = 1;
    const auto limit = static_cast<double>(status.memory_limit_bytes);
    for (const LiveCurve& curve : status.curves) {
        if (!curve.time_ns.empty()) end_ns = std::max(end_ns, curve.time_ns.back());
        peak = std::max(peak, static_cast<double>(curve.peak_bytes));
    }
    // A second at first, so that the axis does not run. A finished curve has all of it.
    if (status.running || end_ns <= 0) end_ns = std::max(end_ns, 1e9);
    // The limit is shown as soon as a recipe comes near it.
    const bool near_limit = limit > 0 && peak > 0.5 * limit;
    if (near_limit) peak = std::max(peak, limit);
    if (!ImPlot::BeginPlot("##live", {-1, height}, kPlainPlot | ImPlotFlags_NoInputs)) return;
    setup_fixed_axes({.unit = profiler::AxisUnit::kTime,
                      .last = end_ns * 1.05,
                      .length_px = ImGui::GetContentRegionAvail().x},
                     {.unit = profiler::AxisUnit::kBytes, .last = peak * 1.1, .length_px = height});
    const std::vector<size_t> colors = curve_colors(status);
    for (size_t i = 0; i < status.curves.size(); ++i) {
        const LiveCurve& curve = status.curves[i];
        ImPlotSpec line;
        line.LineColor = to_vec4(recipe_color(colors[i]));
        line.LineWeight = px(1.75F);
        line.FillColor = to_vec4(recipe_color(colors[i]));
        line.FillAlpha = 0.14F;
        const auto count = static_cast<int>(curve.time_ns.size());
        ImPlot::PlotShaded(curve.recipe.c_str(), curve.time_ns.data(), curve.allocated_bytes.data(),
                           count, 0, line);
        ImPlot::PlotLine(curve.recipe.c_str(), curve.time_ns.data(), curve.allocated_bytes.data(),
                         count, line);
    }
    if (near_limit) {
        ImPlotSpec line;
        line.LineColor = to_vec4(palette().bad);
        line.LineWeight = px(1.5F);
        line.Flags = ImPlotInfLinesFlags_Horizontal;
        ImPlot::PlotInfLines("##limit", &limit, 1, line);
        ImPlot::TagY(limit, to_vec4(palette().bad), "limit");
    }
    for (const LiveCurve& curve : status.curves) draw_end_of_memory(curve, limit);
    ImPlot::EndPlot();
}

std::string peak_text(const LiveCurve& curve, const CaptureStatus& status) {
    return "peak " + profiler::text_of_limit(curve.peak_bytes, status.memory_limit_bytes);
}

std::string state_text(const LiveCurve& curve, const CaptureStatus& status) {
    if (!curve.out_of_memory.empty()) return ICON_TRIANGLE_EXCLAMATION " out of memory";
    if (curve.finished) return ICON_CHECK;
    return status.running ? curve.stage : std::string();
}

void draw_curve_name(const LiveCurve& curve, ImU32 color, const CaptureStatus& status,
                     const std::string& state) {
    swatch(color);
    text(curve.recipe);
    ImGui::SameLine(0, px(6));
    dim_text(peak_text(curve, status));
    if (state.empty()) return;
    ImGui::SameLine(0, px(6));
    if (!curve.out_of_memory.empty()) {
        if (ImGui::GetContentRegionAvail().x < text_width(state)) ImGui::NewLine();
        colored_text(palette().bad, state);
        ImGui::SetItemTooltip("%s", curve.out_of_memory.c_str());
    } else if (curve.finished) {
        colored_text(palette().good, state);
    } else {
        dim_text(state);
    }
}

/// Starts a new line where the next name has no room.
void draw_curve_legend(const CaptureStatus& status) {
    const std::vector<size_t> colors = curve_colors(status);
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    for (size_t i = 0; i < status.curves.size(); ++i) {
        const LiveCurve& curve = status.curves[i];
        const std::string state = state_text(curve, status);
        const float width = ImGui::GetTextLineHeight() + px(12) + text_width(curve.recipe) +
                            text_width(peak_text(curve, status)) + px(6) + text_width(state);
        const bool has_room = ImGui::GetItemRectMax().x + px(14) + width <= right;
        if (i > 0 && has_room) ImGui::SameLine(0, px(14));
        draw_curve_name(curve, recipe_color(colors[i]), status, state);
    }
}

void draw_log(const CaptureStatus& status, CaptureState& state) {
    check_box("Show the worker's log", &state.show_log);
    if (!state.show_log) return;
    const ScopedColor ground(ImGuiCol_ChildBg, palette().plot);
    const ScopedChild child("##log", {0, em(8)}, ImGuiChildFlags_Borders);
    const ScopedFont mono(fonts().mono, 13.5F);
    text(status.log.empty() ? "The worker has written nothing yet." : status.log);
}

void draw_live(const CaptureStatus& status, CaptureState& state) {
    if (status.curves.empty()) {
        empty_state(ICON_RECORD, "No capture yet",
                    "Each recipe trains in its own process, and the recipes take turns step by "
                    "step. Their memory is drawn here while they run, and their traces open when "
                    "they have finished.");
        return;
    }
    draw_progress(status);
    draw_curve_legend(status);
    const float log = ImGui::GetFrameHeightWithSpacing() + (state.show_log ? em(8.6F) : 0);
    draw_live_curve(status, std::max(em(8), ImGui::GetContentRegionAvail().y - log));
    draw_log(status, state);
}

}  // namespace

PanelEvents draw_capture_panel(const PanelContext& context, CaptureState& state) {
    PanelEvents events;
    const std::shared_ptr<const CaptureStatus> shared = context.workspace.capture().status();
    const CaptureStatus& status = *shared;
    const bool wide = ImGui::GetContentRegionAvail().x > em(kFormWidth_em + 17);
    check_form(context.workspace, state);
    {
        const ScopedChild side("##form_side", {wide ? em(kFormWidth_em) : 0, 0},
                               wide ? 0 : ImGuiChildFlags_AutoResizeY);
        {
            // In a low panel the form scrolls, and the button stays in sight.
            const ScopedChild form("##form_rows", {0, wide ? -buttons_height(status, state) : 0},
                                   wide ? 0 : ImGuiChildFlags_AutoResizeY);
            const ScopedDisabled running(status.running);
            draw_form(state.form, context.workspace.gpus());
        }
        draw_buttons(status, state, events);
    }
    if (wide) ImGui::SameLine(0, px(18));
    const ScopedChild live("##live_side", {0, wide ? 0 : em(18)});
    draw_live(status, state);
    return events;
}

}  // namespace app
