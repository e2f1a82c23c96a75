#pragma once

#include "app/panels/advice/advice_panel.h"
#include "app/panels/kernels/kernels_panel.h"
#include "app/panels/kernels/movement_panel.h"
#include "app/panels/layers/layer_panel.h"
#include "app/panels/memory/blocks_panel.h"
#include "app/panels/memory/timeline_panel.h"
#include "app/panels/peak/flame_panel.h"
#include "app/panels/peak/ledger_panel.h"
#include "app/panels/peak/lines_panel.h"
#include "app/panels/plan/frontier_panel.h"
#include "app/panels/plan/planner_panel.h"
#include "app/panels/programs/compare_panel.h"
#include "app/panels/programs/traces_panel.h"
#include "app/panels/ranks/ranks_panel.h"
#include "app/panels/run/capture_panel.h"
#include "app/panels/run/log_panel.h"
#include "app/panels/selected/inspector_panel.h"
#include "app/widgets/icons.h"

#include <imgui.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The table of panels. Menu, layout, shortcuts and command palette are made from it.
/// docs/dev/adding_a_panel.md walks through adding one.
namespace app {

/// A ready arrangement of panels, for one kind of question.
enum class Layout : uint8_t {
    kExplain,  // one program: what happened, what fills the memory, what to do
    kCompare,  // several: what B changes
    kPlan      // none yet: which batch fits which GPU
};
inline constexpr std::array<const char*, 3> kLayoutNames{"Explain", "Compare", "Plan"};

/// Where a panel lies in a layout. Panels that share a place are tabs.
enum class DockPlace : uint8_t {
    kMain,       // wide, at the top
    kBottom,     // below it
    kSideTop,    // narrow column at the right
    kSideBottom  // below it
};

/// What a layout does with a panel.
struct PlaceInLayout {
    DockPlace place = DockPlace::kMain;
    bool is_open = false;
};

/// What panels keep between frames: those of window 1, and once more for each further number.
struct PanelStates {
    AdviceState advice;
    CompareState compare;
    TimelineState timeline;
    KernelsState kernels;
    LayerState layer;
    FlameState flame;
    LedgerState ledger;
    LinesState lines;
    BlocksState blocks;
    CaptureState capture;
    PlannerState planner;
    FrontierState frontier;
    MovementState movement;
    RanksState ranks;
    LogState log;
};

/// A view, and the panel that shows it. The views of one panel share a tab: buttons choose which of
/// them is shown.
struct PanelRow {
    const char* title = "";  // "Memory timeline": its command, and further windows of it
    const char* id = "";     // stable: saved layouts and settings refer to it
    const char* icon = "";
    const char* panel = "";  // title of the tab: "Memory"
    const char* part = "";   // of the button that shows it there: "Categories"
    std::array<PlaceInLayout, kLayoutNames.size()> places{};  // by Layout
    ImGuiKeyChord shortcut = 0;
    const char* mouse = "";  // for the status bar: what click, drag and wheel do in it
    PanelEvents (*draw)(const PanelContext&, PanelStates&) = nullptr;
    ImGuiWindowFlags flags = 0;
    bool can_repeat = false;  // the user may open further windows, each with its own WindowViews
    const char* also = "";    // other words for what it shows, for the search
};

/// A panel that draws from what all panels draw from and its own state.
template <auto Draw, auto State>
PanelEvents draw_with(const PanelContext& context, PanelStates& states) {
    return Draw(context, states.*State);
}

/// For panels that fill their window and scroll inside it.
inline constexpr ImGuiWindowFlags kNoScroll =
    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;

// Places in Explain, Compare and Plan.
using Places = std::array<PlaceInLayout, kLayoutNames.size()>;
inline constexpr Places kInMain{
    {{DockPlace::kMain, true}, {DockPlace::kMain, true}, {DockPlace::kMain, false}}};
inline constexpr Places kInPlan{
    {{DockPlace::kMain, false}, {DockPlace::kMain, false}, {DockPlace::kMain, true}}};
inline constexpr Places kBelow{
    {{DockPlace::kBottom, true}, {DockPlace::kBottom, true}, {DockPlace::kBottom, false}}};
inline constexpr Places kProgramPlaces{
    {{DockPlace::kSideBottom, true}, {DockPlace::kBottom, true}, {DockPlace::kBottom, false}}};
inline constexpr Places kAdvicePlaces{
    {{DockPlace::kSideTop, true}, {DockPlace::kSideTop, false}, {DockPlace::kSideTop, false}}};
inline constexpr Places kSelectedPlaces{
    {{DockPlace::kSideBottom, true}, {DockPlace::kSideBottom, true}, {DockPlace::kSideTop, false}}};
inline constexpr Places kOnDemand{
    {{DockPlace::kBottom, false}, {DockPlace::kBottom, false}, {DockPlace::kBottom, false}}};

inline constexpr std::array kPanels{
    PanelRow{.title = "Memory timeline",
             .id = "timeline",
             .icon = ICON_CHART_AREA,
             .panel = "Memory",
             .part = "Categories",
             .places = kInMain,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_T,
             .mouse = "click sets the moment  ·  wheel zooms time  ·  drag moves  ·  Shift + drag "
                      "selects a range  ·  right drag zooms  ·  double click shows all",
             .draw = draw_with<draw_timeline_panel, &PanelStates::timeline>,
             .flags = kNoScroll,
             .also = "leak, growth, memory over time, curve, reserved"},
    PanelRow{.title = "Blocks",
             .id = "blocks",
             .icon = ICON_MEMORY,
             .panel = "Memory",
             .part = "Blocks",
             .places = kInMain,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_8,
             .mouse = "click selects a block and its moment  ·  wheel zooms time, Ctrl + wheel "
                      "bytes  ·  drag moves  ·  double click shows all",
             .draw = draw_with<draw_blocks_panel, &PanelStates::blocks>,
             .flags = kNoScroll,
             .can_repeat = true,
             .also = "addresses, segments, allocator, what if"},
    PanelRow{.title = "Planner",
             .id = "planner",
             .icon = ICON_SLIDERS,
             .panel = "Plan",
             .part = "Batch curve",
             .places = kInPlan,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_P,
             .mouse = "drag in a plot to another batch  ·  click a recipe for its figures",
             .draw = draw_with<draw_planner_panel, &PanelStates::planner>,
             .flags = kNoScroll,
             .also = "batch, largest batch, gpu, capacity"},
    PanelRow{.title = "Recipe frontier",
             .id = "frontier",
             .icon = ICON_CHART_LINE,
             .panel = "Plan",
             .part = "All recipes",
             .places = kInPlan,
             .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P,
             .mouse = "click a dot, and another one for the way between  ·  double click shows it "
                      "as B  ·  drag the green limit",
             .draw = draw_with<draw_frontier_panel, &PanelStates::frontier>,
             .flags = kNoScroll,
             .also = "trade-off, pareto, fastest"},
    PanelRow{.title = "What to do",
             .id = "advice",
             .icon = ICON_LIGHTBULB,
             .panel = "What to do",
             .places = kAdvicePlaces,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_D,
             .mouse = "click a card for what to paste  ·  Show as B runs the program with the "
                      "remedy",
             .draw = draw_with<draw_advice_panel, &PanelStates::advice>,
             .also = "oom, out of memory, del, expandable segments, fragmentation, remedy, advice, "
                     "fix, explain"},
    PanelRow{.title = "Inspector",
             .id = "inspector",
             .icon = ICON_CIRCLE_INFO,
             .panel = "Selected",
             .places = kSelectedPlaces,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_I,
             .mouse = "x takes from the selection  ·  Alt + arrows go back and forth  ·  the pin "
                      "keeps what is described",
             .draw = [](const PanelContext& c, PanelStates&) { return draw_inspector_panel(c); },
             .can_repeat = true,
             .also = "selected, who keeps it"},
    PanelRow{.title = "Compare",
             .id = "compare",
             .icon = ICON_CHART_COLUMN,
             .panel = "Programs",
             .part = "Compare",
             .places = kProgramPlaces,
             .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_C,
             .mouse = "click a recipe to make it B  ·  click a category to pick it out  ·  right "
                      "click the table's titles to choose columns",
             .draw = draw_with<draw_compare_panel, &PanelStates::compare>,
             .also = "recipes, throughput"},
    PanelRow{.title = "Traces",
             .id = "traces",
             .icon = ICON_LAYERS,
             .panel = "Programs",
             .part = "Traces",
             .places = kProgramPlaces,
             .shortcut = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_T,
             .mouse = "click the letters to choose A and B  ·  right click for more",
             .draw =
                 [](const PanelContext& c, PanelStates&) {
                     const Workspace& w = c.workspace;
                     return PanelEvents{.traces = draw_traces_panel(
                                            {w.documents(), w.labels(), w.selection().a,
                                             w.selection().b, w.prediction(), w.loading()})};
                 },
             .also = "open files"},
    PanelRow{.title = "Diagnostics",
             .id = "diagnostics",
             .icon = ICON_HEART_PULSE,
             .panel = "Programs",
             .part = "Notes",
             .places = kProgramPlaces,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_6,
             .draw =
                 [](const PanelContext& c, PanelStates&) {
                     draw_diagnostics_panel(c.workspace.selection());
                     return PanelEvents();
                 },
             .also = "notes, problems, quality"},
    PanelRow{.title = "Lines of code",
             .id = "lines",
             .icon = ICON_LIST,
             .panel = "What fills the peak",
             .part = "Lines",
             .places = kBelow,
             .mouse = "click a line to find its memory in the flame graph",
             .draw = draw_with<draw_lines_panel, &PanelStates::lines>,
             .flags = kNoScroll,
             .also = "which line, code, peak, module"},
    PanelRow{.title = "Flame graph",
             .id = "flame",
             .icon = ICON_FIRE,
             .panel = "What fills the peak",
             .part = "Flame",
             .places = kBelow,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_9,
             .mouse = "click zooms to a module or selects a tensor  ·  Backspace zooms out  ·  "
                      "right click for more",
             .draw = draw_with<draw_flame_panel, &PanelStates::flame>,
             .flags = kNoScroll,
             .can_repeat = true,
             .also = "peak, lines of code, modules"},
    PanelRow{.title = "Ledger",
             .id = "ledger",
             .icon = ICON_TABLE,
             .panel = "What fills the peak",
             .part = "Kept for backward",
             .places = kBelow,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_4,
             .mouse = "click selects a tensor  ·  click a title to sort  ·  right click for more",
             .draw = draw_with<draw_ledger_panel, &PanelStates::ledger>,
             .flags = kNoScroll,
             .can_repeat = true,
             .also = "saved tensors, activations"},
    PanelRow{.title = "Layer explorer",
             .id = "layer",
             .icon = ICON_LAYERS,
             .panel = "Layers",
             .places = kBelow,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_L,
             .mouse = "click selects a tensor or a call  ·  the switches predict another recipe "
                      "and show it as B",
             .draw = draw_with<draw_layer_panel, &PanelStates::layer>,
             .flags = kNoScroll,
             .also = "switches, techniques"},
    PanelRow{.title = "Kernels",
             .id = "kernels",
             .icon = ICON_CHART_GANTT,
             .panel = "Kernels",
             .part = "Timeline",
             .places = kBelow,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_7,
             .mouse = "click selects a call or a module  ·  wheel zooms time  ·  drag moves  ·  "
                      "Shift + drag selects a range  ·  double click zooms to what is under it",
             .draw = draw_with<draw_kernels_panel, &PanelStates::kernels>,
             .flags = kNoScroll,
             .also = "calls, streams"},
    PanelRow{.title = "Movement",
             .id = "movement",
             .icon = ICON_BOLT,
             .panel = "Kernels",
             .part = "Roofline",
             .places = kBelow,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_M,
             .mouse = "click selects the longest call of an op  ·  drag a rectangle to mark its "
                      "ops",
             .draw = draw_with<draw_movement_panel, &PanelStates::movement>,
             .flags = kNoScroll,
             .also = "slow, roofline, bandwidth, time by op"},
    PanelRow{.title = "Ranks",
             .id = "ranks",
             .icon = ICON_SERVER,
             .panel = "Ranks",
             .places = kOnDemand,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_G,
             .mouse = "click sets the moment  ·  wheel zooms time  ·  drag moves  ·  Shift + drag "
                      "selects a range  ·  double click shows all",
             .draw = draw_with<draw_ranks_panel, &PanelStates::ranks>,
             .flags = kNoScroll,
             .also = "ddp, fsdp, collectives, many gpus"},
    PanelRow{.title = "Capture",
             .id = "capture",
             .icon = ICON_RECORD,
             .panel = "Capture",
             .part = "Form",
             .places = kOnDemand,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_5,
             .draw = draw_with<draw_capture_panel, &PanelStates::capture>,
             .also = "measure, record"},
    PanelRow{.title = "Log",
             .id = "log",
             .icon = ICON_TERMINAL,
             .panel = "Capture",
             .part = "Log",
             .places = kOnDemand,
             .shortcut = ImGuiMod_Ctrl | ImGuiKey_J,
             .draw =
                 [](const PanelContext& c, PanelStates& s) {
                     const CaptureSession& capture = c.workspace.capture();
                     draw_log_panel(
                         {capture.status()->log, c.workspace.prediction_log(), capture.running()},
                         s.log);
                     return PanelEvents();
                 },
             .flags = kNoScroll},
};

/// The views of the panel that shows this one, in the order of the table.
std::vector<const PanelRow*> views_beside(const PanelRow& row);
/// Whether a layout shows the view at first: its panel is open there, and it is the first of it.
bool is_open_at_first(const PanelRow& row, Layout layout);

// ---- windows --------------------------------------------------------------------------------

/// A panel has one window; of some panels the user may open more.
struct PanelWindow {
    const PanelRow* panel = nullptr;
    int number = 1;  // the panel's own window is 1; the user opens 2 to kMostWindows
};

/// Every window that may be open, in the order of the table of panels.
std::vector<PanelWindow> all_windows();

/// "ledger", "ledger-2": as stable as the id of a panel, and usable as the name of a file.
std::string id_of(const PanelWindow& window);
/// The window with this id; nullopt if there can be none.
std::optional<PanelWindow> find_window(std::string_view id);

/// "What fills the peak" of window 1, "Ledger 2" of a further one.
std::string title_of(const PanelWindow& window);
/// "<icon> Ledger 2###ledger-2", "<icon> Memory###timeline": ImGui identifies a window by the part
/// after ###.
std::string window_name(const PanelWindow& window);

}  // namespace app
