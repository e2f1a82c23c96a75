#pragma once

#include "app/panels/panels.h"
#include "app/user/settings.h"
#include "app/widgets/command_palette.h"
#include "app/widgets/file_dialog.h"
#include "app/widgets/toasts.h"
#include "app/window/actions.h"
#include "app/window/layout_history.h"
#include "app/workspace/workspace.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What stands in the window, and what one frame of it draws.
namespace app {

/// What the save dialog is open for.
enum class SaveWhat { kPicture, kComparison, kTimeline };

struct Ui {
    Workspace workspace;
    PanelStates panels;
    Settings settings;
    ToastState toasts;
    PaletteState palette;
    FileDialogState open_dialog;
    FileDialogState save_dialog;
    SaveWhat save_what = SaveWhat::kPicture;
    std::vector<Action> actions;

    bool reset_layout = false;
    LayoutHistory layout_history;
    std::optional<LayoutSnapshot> layout_to_restore;  // before the next frame
    int layout_settles_in = 0;                        // frames; after the default one was built
    std::string focused_panel;                        // id; the last one that had the focus
    bool show_keys = false;
    bool show_metrics = false;
    bool quit = false;
    std::vector<std::string> focus_queue;  // ids of panels to bring to the front, one a frame
    /// A picture of the window, to be written after the next frame.
    std::optional<std::filesystem::path> picture;
};

/// Takes over what the settings say and builds the actions.
void set_up(Ui& ui, Settings settings);

/// Between ImGui::NewFrame and ImGui::Render.
void draw_ui(Ui& ui);

/// Settings as they are now, to be written when they differ from those on disk.
Settings current_settings(const Ui& ui);

/// A layout of before; only between frames.
void restore_layout(Ui& ui, const LayoutSnapshot& layout);

/// Whether something waits for a frame that no event brings.
bool needs_next_frame(const Ui& ui);

/// How long the window may sleep when nothing happens.
double seconds_to_next_frame(const Ui& ui);

/// Brings a panel to the front, opening it if it is closed.
void show_panel(Ui& ui, const char* id);

}  // namespace app
