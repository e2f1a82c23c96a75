#pragma once

#include "app/panels/panels.h"
#include "app/user/settings.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/file_dialog.h"
#include "app/window/actions.h"
#include "app/window/export_dialog.h"
#include "app/window/keyboard.h"
#include "app/window/layout.h"
#include "app/window/run_dialog.h"
#include "app/window/windows.h"
#include "app/workspace/workspace.h"

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Everything in the window, and the drawing of one frame.
namespace app {

/// Where a panel lies in the window.
struct PanelRect {
    ImVec2 corner;
    ImVec2 size;
};

/// Notices in a corner of the window, which disappear by themselves.
struct ToastState {
    struct Toast {
        int id = 0;
        Notice notice;
        double until_s = 0;  // on ImGui's clock
    };
    std::vector<Toast> toasts;  // oldest first
    int next_id = 0;
};

/// The name that was chosen last, and which of its places is selected.
struct Found {
    std::shared_ptr<const profiler::SearchIndex> index;  // null: nothing was chosen
    std::size_t name = 0;
    std::size_t at = 0;
    std::array<std::weak_ptr<const Document>, 2> documents;  // the A and B that were searched
};

struct Ui {
    Workspace workspace;
    PanelStates panels;  // of windows 1; states_of gives those of any number
    std::array<PanelStates, kMostWindows - 1> further_panels;
    Settings settings;                // also which windows are open: is_open, set_open
    std::optional<double> cursor_ns;  // the time under the mouse in the last frame
    ToastState toasts;
    PaletteState palette;
    Found found;
    FileDialogState open_dialog;
    FileDialogState save_dialog;
    ExportState exporting;
    RunDialogState run_dialog;
    std::vector<Action> actions;

    bool reset_layout = false;
    LayoutHistory layout_history;
    std::optional<LayoutSnapshot> layout_to_restore;  // before the next frame
    int layout_settles_in = 0;  // number of frames until a new default layout has settled
    std::string focused_panel;  // id of the window that last had the focus
    std::string hovered_panel;  // the window that the mouse was over last
    KeyboardState keyboard;
    bool show_metrics = false;
    bool quit = false;
    std::vector<std::string> focus_queue;  // ids of windows to bring to the front, one per frame
    /// Windows that appear in the next frame, by id: the name of the window they lie beside.
    std::map<std::string, std::string> new_windows;
    /// Where to write a picture of the window after the next frame.
    std::optional<std::filesystem::path> picture;
    std::string picture_panel;  // id of the panel's window in that picture; empty: everything
    std::map<std::string, PanelRect> panel_rects;  // of the windows that this frame shows, by id
    std::string menu_panel;                        // id of the window whose menu is open
    bool open_panel_menu = false;
};

/// Applies the settings and makes the actions.
void set_up(Ui& ui, Settings settings);

/// Between ImGui::NewFrame and ImGui::Render.
void draw_ui(Ui& ui);

/// The current settings. The caller writes them when they differ from the file.
Settings current_settings(const Ui& ui);

/// Restores an earlier layout; only between frames.
void restore_layout(Ui& ui, const LayoutSnapshot& layout);

/// Whether another frame is due although no event will come.
bool needs_next_frame(const Ui& ui);

/// How long the window may sleep when nothing happens.
double seconds_to_next_frame(const Ui& ui);

// ---- search (search.cpp) --------------------------------------------------------------------

/// Commands, open traces, recent files, and what A and B hold, for the text in the palette.
PaletteContent palette_content(Ui& ui, const std::string& query);

/// Selects the next place of the chosen name (1) or the one before (-1), as a click on it does, and
/// brings a panel that shows it to the front.
void step_found(Ui& ui, int direction);

/// "aten::addmm, 3 of 144 in A"; empty if nothing was chosen.
std::string describe_found(const Ui& ui);

}  // namespace app
