#include "app/panels/memory/blocks_details.h"

#include "app/panels/parts/form_rows.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace app {
namespace {

using profiler::LiveBlocksView;
using profiler::SegmentMapView;
using profiler::SegmentPiece;
using profiler::SegmentRow;
using AllocationId = profiler::Id<profiler::Allocation>;

// ---- live blocks ----------------------------------------------------------------------------

void draw_live_header(const Workspace& workspace, const LiveBlocksView& view, PanelEvents& events) {
    const bool at_peak = !workspace.selection().moment_ns;
    bold_text(at_peak ? "Live at the peak of A" : "Live at the moment");
    if (!at_peak) {
        ImGui::SameLine();
        const float button = em(2.6F);
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                             std::max(0.0F, ImGui::GetContentRegionAvail().x - button));
        if (ImGui::SmallButton("Peak###peak")) events.selection.moment_ns = std::optional<double>();
        ImGui::SetItemTooltip("Go back to the peak of A (Escape)");
    }
    const float width = ImGui::GetContentRegionAvail().x;
    dim_text(fit_to(view.moment_text + "   " + view.total_text, width));
    if (!view.gone_text.empty()) colored_text(palette().good, fit_to(view.gone_text, width));
}

void draw_live_row(const PanelContext& context, const LiveBlocksView::Row& row, bool with_other,
                   PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const ScopedId id(row.allocation.value);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    if (ImGui::Selectable("##row", is_selected(context, row.allocation),
                          ImGuiSelectableFlags_SpanAllColumns)) {
        pick_block(context, row.allocation, events);
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        draw_block_readout(context, row.allocation);
    }
    ImGui::SetCursorPos(start);
    const auto& picked = workspace.selection().category;
    const bool faded = picked && *picked != row.category;
    category_swatch(row.category, faded || row.gone);
    const float name_width = ImGui::GetContentRegionAvail().x;
    colored_text(faded ? palette().dim : palette().text, fit_to(row.name, name_width));
    ImGui::TableNextColumn();
    dim_text(fit_path_to(row.module_path, ImGui::GetContentRegionAvail().x));
    ImGui::TableNextColumn();
    right_text(row.size_text);
    if (!with_other) return;
    ImGui::TableNextColumn();
    const ScopedColor color(ImGuiCol_Text, row.gone ? palette().good : palette().dim);
    right_text(row.other_text);
}

// ---- segments -------------------------------------------------------------------------------

constexpr float kSizes_em = 13;  // address and size
constexpr float kNotes_em = 14;  // what is free

/// A row of the segment map: its text at the left, its bar, and what is free at the right.
struct SegmentColumns {
    float size_x = 0;  // right end of the size
    float bar_x = 0;
    float bar_width = 0;  // of the largest segment
    float free_x = 0;
};

void fill_piece(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const SegmentPiece& piece,
                bool faded) {
    using State = SegmentPiece::State;
    if (lower.x - upper.x > px(4)) lower.x -= 1;
    switch (piece.state) {
        case State::kUsed:
            draw->AddRectFilled(upper, lower,
                                with_alpha(category_color(piece.category), faded ? 0.2F : 0.9F));
            break;
        case State::kPending:
            fill_category(draw, upper, lower, profiler::Category::kUnknown, 0.8F, px(4));
            break;
        case State::kFree:
            draw->AddRectFilled(upper, lower, palette().plot);
            draw->AddRect(upper, lower, with_alpha(palette().dim, 0.45F));
            break;
        case State::kMixed: {
            const double used = 1 - static_cast<double>(piece.free_bytes) /
                                        static_cast<double>(std::max<int64_t>(1, piece.size_bytes));
            draw->AddRectFilled(upper, lower,
                                with_alpha(palette().dim, 0.15F + 0.5F * static_cast<float>(used)));
            break;
        }
    }
}

void draw_piece_readout(const PanelContext& context, const SegmentPiece& piece) {
    using State = SegmentPiece::State;
    if (piece.allocation.valid()) return draw_block_readout(context, piece.allocation);
    if (!ImGui::BeginTooltip()) return;
    if (piece.state == State::kMixed) {
        bold_text(fmt::format("{} pieces, {}", profiler::format_count(piece.count),
                              profiler::format_bytes(piece.size_bytes)));
        dim_text(fmt::format("{} of it is free; each piece is narrower than a pixel",
                             profiler::format_bytes(piece.free_bytes)));
    } else {
        bold_text(profiler::format_exact_bytes(piece.size_bytes) + " free");
    }
    ImGui::EndTooltip();
}

void draw_segment_row(const PanelContext& context, const SegmentMapView& view,
                      const SegmentRow& row, const SegmentColumns& columns, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight() + px(3);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float text_y = corner.y + px(1);
    const bool is_explained = &row == &view.rows[std::min(view.cause_row, view.rows.size() - 1)];
    draw->AddText({corner.x, text_y}, is_explained ? palette().accent : palette().dim,
                  row.address_text.c_str());
    draw->AddText({corner.x + columns.size_x - text_width(row.size_text), text_y}, palette().text,
                  row.size_text.c_str());
    const double scale = columns.bar_width / static_cast<double>(view.largest_segment_bytes);
    const float left = corner.x + columns.bar_x;
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row =
        ImGui::IsWindowHovered() && mouse.y >= corner.y && mouse.y < corner.y + height;
    for (const SegmentPiece& piece : row.pieces) {
        const auto x = [&](int64_t bytes) {
            return std::round(left + static_cast<float>(static_cast<double>(bytes) * scale));
        };
        const ImVec2 upper{x(piece.start_bytes), corner.y + px(2)};
        const ImVec2 lower{std::max(upper.x + 1, x(piece.start_bytes + piece.size_bytes)),
                           corner.y + height - px(2)};
        const auto& picked = workspace.selection().category;
        fill_piece(draw, upper, lower, piece, picked && *picked != piece.category);
        if (piece.allocation.valid() && is_selected(context, piece.allocation)) {
            draw->AddRect(upper, lower, palette().text, 0, px(2));
        }
        if (!in_row || mouse.x < upper.x || mouse.x >= lower.x) continue;
        draw_piece_readout(context, piece);
        if (piece.allocation.valid() && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
            pick_block(context, piece.allocation, events);
        }
    }
    const std::string note = row.free_text + (row.kind_text.empty() ? "" : "   " + row.kind_text);
    draw->AddText({corner.x + columns.free_x, text_y}, palette().dim, note.c_str());
    ImGui::Dummy({columns.free_x, height});
    if (in_row && mouse.x < left && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        wanted_query(context, events).segment = row.address;
    }
    if (in_row && mouse.x < left) ImGui::SetTooltip("Click to see why it was taken");
}

/// Why the chosen or newest segment was taken. A click selects the block that it was taken for.
void draw_cause(const PanelContext& context, const SegmentMapView& view, PanelEvents& events) {
    if (view.cause_text.empty()) return;
    colored_text(palette().accent, view.cause_title + ":");
    ImGui::SameLine(0, px(5));
    wrapped_text(view.cause_text);
    if (view.cause_request.valid() && ImGui::IsItemClicked()) {
        pick_block(context, view.cause_request, events);
    }
}

}  // namespace

const DocumentPtr& shown_document(const PanelContext& context) {
    const Selection& selection = context.workspace.selection();
    return shown_trace(selection, context.views.queries.blocks) == 0 ? selection.a : selection.b;
}

void pick_block(const PanelContext& context, AllocationId allocation, PanelEvents& events) {
    if (is_selected(context, allocation)) {
        events.selection.clear_tensor = true;
        return;
    }
    const DocumentPtr& document = shown_document(context);
    const auto storage =
        document->trace->allocations.get<&profiler::Allocation::storage>(allocation);
    events.selection.tensor = {document, storage, allocation};
}

bool is_selected(const PanelContext& context, AllocationId allocation) {
    const Selection& selection = context.workspace.selection();
    const auto& tensor = selection.tensor;
    const bool in_b = shown_trace(selection, context.views.queries.blocks) == 1;
    return tensor && tensor->in_b == in_b && tensor->allocation == allocation;
}

void draw_block_readout(const PanelContext& context, AllocationId allocation) {
    if (!ImGui::BeginTooltip()) return;
    const profiler::BlockReadout readout =
        context.workspace.read_block(context.views.queries.blocks, allocation);
    wrapped_bold_text(readout.title, em(38));
    readout_table(readout.rows);
    ImGui::EndTooltip();
}

BlocksQuery& wanted_query(const PanelContext& context, PanelEvents& events) {
    if (!events.window.blocks) events.window.blocks = context.views.queries.blocks;
    return *events.window.blocks;
}

void draw_live_blocks(const PanelContext& context, const LiveBlocksView& view,
                      PanelEvents& events) {
    draw_live_header(context.workspace, view, events);
    const bool with_other = !view.gone_text.empty();
    const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH;
    const ScopedStyle padding(ImGuiStyleVar_CellPadding, {px(4), px(2)});
    const ScopedFont font(fonts().text, kSmallSize);
    if (!ImGui::BeginTable("##live", with_other ? 4 : 3, flags)) return;
    ImGui::TableSetupColumn("Block", ImGuiTableColumnFlags_WidthStretch, 1.0F);
    ImGui::TableSetupColumn("Module", ImGuiTableColumnFlags_WidthStretch, 1.1F);
    ImGui::TableSetupColumn("Size", ImGuiTableColumnFlags_WidthFixed, em(5));
    if (with_other) ImGui::TableSetupColumn("B holds", ImGuiTableColumnFlags_WidthFixed, em(5));
    if (with_other) {
        ImGui::TableSetupScrollFreeze(0, 1);
        const ScopedColor dim(ImGuiCol_Text, palette().dim);
        ImGui::TableHeadersRow();
    }
    draw_visible_rows(view.rows.size(),
                      [&](size_t i) { draw_live_row(context, view.rows[i], with_other, events); });
    if (!view.rest_text.empty()) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        dim_text(view.rest_text);
    }
    ImGui::EndTable();
}

int segment_width(float width) {
    return static_cast<int>(std::max(em(4), width - kSizes_em * em(1) - kNotes_em * em(1)));
}

void draw_segments(const PanelContext& context, const SegmentMapView& view, PanelEvents& events) {
    const ScopedFont font(fonts().text, kSmallSize);
    draw_segment_choice(context, events);
    dim_text(fit_to(
        fmt::format("{} {}. {}", profiler::format_count(static_cast<int64_t>(view.rows.size())),
                    view.rows.size() == 1 ? "segment" : "segments", view.summary),
        ImGui::GetContentRegionAvail().x));
    draw_cause(context, view, events);
    const ScopedChild rows("##segments");
    if (!rows) return;
    SegmentColumns columns;
    columns.size_x = em(kSizes_em - 0.8F);
    columns.bar_x = em(kSizes_em);
    columns.bar_width = static_cast<float>(segment_width(ImGui::GetContentRegionAvail().x));
    columns.free_x = columns.bar_x + columns.bar_width + em(0.8F);
    const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, {0, 0});
    draw_visible_rows(view.rows.size(), [&](size_t i) {
        draw_segment_row(context, view, view.rows[i], columns, events);
    });
}

// ---- what other settings would do -----------------------------------------------------------

namespace {

using profiler::AllocatorSettings;
using profiler::WhatIfView;
using Trend = WhatIfView::Trend;

/// One frame's drawing of the settings: what the helpers below share.
struct Frame {
    const PanelContext& context;
    WhatIfState& state;
    WhatIfQuery& query;
    PanelEvents& events;
};

/// The text of the settings after they were chosen elsewhere.
void choose(Frame& frame, const AllocatorSettings& settings) {
    frame.query.choice.settings = settings;
    frame.state.conf_text = to_text(settings);
}

// ---- the form -------------------------------------------------------------------------------

/// A row with a list of values; returns the chosen one.
template <size_t N>
std::optional<int64_t> pick(const char* label, const char* tooltip,
                            const std::array<int64_t, N>& values, int64_t shown,
                            std::string (*name)(int64_t)) {
    form_row(label);
    std::optional<int64_t> picked;
    if (ImGui::BeginCombo(fmt::format("###{}", label).c_str(), name(shown).c_str())) {
        for (const int64_t value : values) {
            if (ImGui::Selectable(name(value).c_str(), value == shown)) picked = value;
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("%s", tooltip);
    return picked;
}

std::string split_name(int64_t mib) {
    return mib == 0 ? std::string("unlimited") : fmt::format("{} MiB", mib);
}

std::string divisions_name(int64_t divisions) {
    return divisions == 0 ? std::string("off") : fmt::format("to 1/{} of a power of 2", divisions);
}

void draw_splitting(AllocatorSettings& settings) {
    form_row("Expandable");
    check_box("###expandable", &settings.expandable_segments);
    ImGui::SetItemTooltip("expandable_segments: segments grow page by page");
    constexpr std::array<int64_t, 7> kSplits{0, 32, 64, 128, 256, 512, 1024};
    const bool limited = settings.max_split_bytes != profiler::kUnlimitedBytes;
    if (const auto mib = pick(
            "Max split size", "max_split_size_mb: larger blocks are kept whole, for large requests",
            kSplits, limited ? settings.max_split_bytes / profiler::kMiB : 0, split_name)) {
        settings.max_split_bytes = *mib == 0 ? profiler::kUnlimitedBytes : *mib * profiler::kMiB;
    }
    constexpr std::array<int64_t, 5> kDivisions{0, 2, 4, 8, 16};
    if (const auto divisions =
            pick("Round up", "roundup_power2_divisions: sizes are rounded, so that more blocks fit",
                 kDivisions, settings.roundup_power2_divisions.back(), divisions_name)) {
        settings.roundup_power2_divisions.fill(*divisions);
    }
}

void draw_garbage_collection(AllocatorSettings& settings) {
    form_row("Garbage at");
    int percent = static_cast<int>(std::lround(settings.gc_threshold * 100));
    if (ImGui::SliderInt("###gc", &percent, 0, 99, percent == 0 ? "off" : "%d %% of the limit",
                         ImGuiSliderFlags_AlwaysClamp | ImGuiSliderFlags_NoInput)) {
        settings.gc_threshold = percent / 100.0;
    }
    ImGui::SetItemTooltip(
        "garbage_collection_threshold: above this share of the memory limit, cached blocks that "
        "were not used for long are given back");
}

/// The memory of a device, typed or taken from a known GPU.
void draw_limit(Frame& frame) {
    form_row("Memory limit");
    ImGui::SetNextItemWidth(-ImGui::GetFrameHeight() - px(2));
    std::string& text = frame.state.limit_text;
    bool edited = ImGui::InputTextWithHint("###limit", "none; 16GiB", &text);
    ImGui::SetItemTooltip("The device's memory: more than this cannot be reserved");
    ImGui::SameLine(0, px(2));
    if (ImGui::BeginCombo("###gpu", nullptr,
                          ImGuiComboFlags_NoPreview | ImGuiComboFlags_PopupAlignLeft |
                              ImGuiComboFlags_HeightLarge)) {
        if (ImGui::Selectable("none")) {
            text.clear();
            edited = true;
        }
        for (const profiler::Gpu& gpu : frame.context.workspace.gpus()) {
            const auto bytes = static_cast<int64_t>(gpu.usable_memory_bytes.value);
            if (ImGui::Selectable(
                    fmt::format("{}: {}", gpu.name, profiler::format_bytes(bytes)).c_str())) {
                text = fmt::format("{}MiB", bytes / profiler::kMiB);
                edited = true;
            }
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("The memory of a GPU");
    if (!edited) return;
    frame.state.limit_error.clear();
    frame.query.choice.memory_limit_bytes.reset();
    if (text.empty()) return;
    const auto bytes = profiler::parse_bytes(text);
    if (bytes && *bytes > 0) {
        frame.query.choice.memory_limit_bytes = *bytes;
    } else {
        frame.state.limit_error = bytes ? "The limit is 0." : bytes.error().message;
    }
}

void draw_conf_text(Frame& frame) {
    form_row("As text");
    const float button = ImGui::GetFrameHeight() + px(6);
    ImGui::SetNextItemWidth(-button);
    std::string& text = frame.state.conf_text;
    if (ImGui::InputTextWithHint("###conf", "default settings", &text)) {
        const auto settings = profiler::parse_alloc_conf(text);
        frame.state.conf_error = settings ? std::string() : settings.error().message;
        if (settings) frame.query.choice.settings = *settings;
    }
    ImGui::SetItemTooltip("PYTORCH_CUDA_ALLOC_CONF; takes every setting of the allocator");
    ImGui::SameLine(0, px(2));
    const std::string line = profiler::alloc_conf_line(frame.query.choice.settings);
    if (ImGui::Button(ICON_COPY "###copy_conf")) ImGui::SetClipboardText(line.c_str());
    ImGui::SetItemTooltip("Copy %s", line.c_str());
}

void draw_form(Frame& frame) {
    if (!ImGui::BeginTable("##what_if", 2, ImGuiTableFlags_SizingFixedFit)) return;
    ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, em(7));
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    AllocatorSettings settings = frame.query.choice.settings;
    draw_splitting(settings);
    draw_garbage_collection(settings);
    if (settings != frame.query.choice.settings) {
        choose(frame, settings);
        frame.state.conf_error.clear();
    }
    draw_limit(frame);
    draw_conf_text(frame);
    ImGui::EndTable();
    for (const std::string& error : {frame.state.conf_error, frame.state.limit_error}) {
        if (error.empty()) continue;
        const ScopedColor color(ImGuiCol_Text, palette().bad);
        ImGui::TextWrapped("%s", error.c_str());
    }
}

// ---- figures --------------------------------------------------------------------------------

ImU32 color_of(Trend trend) {
    if (trend == Trend::kSame) return palette().text;
    return trend == Trend::kBetter ? palette().good : palette().bad;
}

void draw_figures(const WhatIfView& view) {
    const ImGuiTableFlags flags = ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_BordersInnerH;
    if (!ImGui::BeginTable("##figures", 3, flags)) return;
    ImGui::TableSetupColumn("", 0, 1.25F);
    ImGui::TableSetupColumn("Own settings", 0, 1.0F);
    ImGui::TableSetupColumn("With these", 0, 1.15F);
    ImGui::TableNextRow();
    ImGui::TableSetColumnIndex(1);
    right_text("Own settings");
    ImGui::SetItemTooltip("The same requests, replayed under the trace's own settings: %s",
                          view.recorded_settings.c_str());
    ImGui::TableNextColumn();
    right_text(view.fits ? "With these" : "Until it ran out");
    for (const WhatIfView::Figure& figure : view.figures) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        dim_text(figure.label);
        ImGui::SetItemTooltip("%s", figure.help.c_str());
        ImGui::TableNextColumn();
        right_text(figure.recorded_text);
        ImGui::TableNextColumn();
        const ScopedColor color(ImGuiCol_Text, color_of(figure.trend));
        const char* arrow = figure.trend == Trend::kSame     ? ""
                            : figure.trend == Trend::kBetter ? ICON_ARROW_DOWN " "
                                                             : ICON_ARROW_UP " ";
        right_text(arrow + figure.chosen_text);
    }
    ImGui::EndTable();
}

void draw_fit(Frame& frame, const WhatIfView& view) {
    if (view.fit_text.empty()) return;
    colored_text(view.fits ? palette().good : palette().bad,
                 view.fits ? ICON_CHECK : ICON_TRIANGLE_EXCLAMATION);
    ImGui::SameLine(0, px(6));
    wrapped_text(view.fit_text);
    if (!view.out_of_memory_ns) return;
    const Workspace& workspace = frame.context.workspace;
    const size_t shown = shown_trace(workspace.selection(), frame.context.views.queries.blocks);
    const auto& alignment = workspace.time().alignment;
    const double moment_ns = shown == 1 && alignment
                                 ? alignment->second.to_shared(*view.out_of_memory_ns)
                                 : *view.out_of_memory_ns;
    if (ImGui::SmallButton("Show this moment###show_oom")) {
        frame.events.selection.moment_ns = std::optional(moment_ns);
        frame.query.shows_map = true;
    }
}

// ---- all settings ---------------------------------------------------------------------------

void draw_tried_row(Frame& frame, const WhatIfView::Tried& row) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const bool chosen = row.settings == frame.query.choice.settings;
    if (ImGui::Selectable("###row", chosen, ImGuiSelectableFlags_SpanAllColumns)) {
        choose(frame, row.settings);
        frame.state.conf_error.clear();
    }
    ImGui::SetItemTooltip("%s", row.settings_text.c_str());
    ImGui::SameLine(0, 0);
    text(fit_to(row.settings_text, ImGui::GetContentRegionAvail().x));
    ImGui::TableNextColumn();
    const ScopedFont mono(fonts().mono);
    row.fits ? right_text(row.reserved_text) : dim_text("");
    ImGui::TableNextColumn();
    const ScopedColor color(ImGuiCol_Text, row.fits ? color_of(row.trend) : palette().bad);
    right_text(row.fits ? row.change_text : ICON_XMARK " full");
    if (!row.fits) ImGui::SetItemTooltip("Runs out of memory");
}

void draw_tried(Frame& frame, const WhatIfView& view) {
    if (toggle_button(ICON_LIST "  Try all###try_all", frame.query.tries_all)) {
        frame.query.tries_all ^= true;
    }
    ImGui::SetItemTooltip("Replay the settings that are worth a try, best first");
    if (!frame.query.tries_all || view.tried.empty()) return;
    const ScopedFont small(fonts().text, kSmallSize);
    const ImGuiTableFlags flags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH;
    if (!ImGui::BeginTable("##tried", 3, flags)) return;
    ImGui::TableSetupColumn("settings", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("reserved", ImGuiTableColumnFlags_WidthFixed, em(5));
    ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthFixed, em(5.5F));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    dim_text("Settings");
    ImGui::TableNextColumn();
    {
        const ScopedColor dim(ImGuiCol_Text, palette().dim);
        right_text("Reserved");
        ImGui::TableNextColumn();
        right_text("Change");
    }
    for (size_t i = 0; i < view.tried.size(); ++i) {
        const ScopedId id(static_cast<int>(i));
        draw_tried_row(frame, view.tried[i]);
    }
    ImGui::EndTable();
}

/// A line that fills up while the requests are replayed. Its room is always there.
void draw_progress(const PanelContext& context) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 size{ImGui::GetContentRegionAvail().x, px(3)};
    ImGui::Dummy(size);
    const auto share = context.views.what_if.progress();
    if (!share) return;
    const float done = static_cast<float>(std::clamp(*share, 0.0, 1.0));
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, palette().plot);
    draw->AddRectFilled(corner, {corner.x + size.x * done, corner.y + size.y}, palette().accent);
}

}  // namespace

void draw_what_if(const PanelContext& context, WhatIfState& state, PanelEvents& events) {
    Frame frame{context, state, wanted_query(context, events).what_if, events};
    {
        const ScopedStyle flat(ImGuiStyleVar_FramePadding, {px(5), px(2)});
        draw_form(frame);
    }
    draw_progress(context);
    const auto& slot = context.views.what_if;
    if (!slot.error().empty()) return note_text(slot.error());
    const WhatIfView* view = slot.view();
    if (!view) return dim_text("Replaying the requests ...");
    draw_fit(frame, *view);
    draw_tried(frame, *view);
    draw_figures(*view);
    {
        const ScopedFont small(fonts().text, kSmallSize);
        for (const std::string& note : view->notes) note_text(note);
    }
}

void draw_segment_choice(const PanelContext& context, PanelEvents& events) {
    WhatIfQuery& query = wanted_query(context, events).what_if;
    if (!query.is_open) return;
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(6), 0});
    choose_one<bool>(
        query.shows_map,
        {{"Recorded###map_recorded", "The segments that the trace recorded", false},
         {"What-if###map_what_if", "The segments with the chosen settings, replayed", true}},
        px(1));
    ImGui::SameLine(0, px(8));
}

}  // namespace app
