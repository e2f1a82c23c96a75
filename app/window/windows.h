#pragma once

#include "app/panels/panels.h"

#include <string>
#include <string_view>
#include <vector>

/// Which windows of panels are open, and opening further ones.
namespace app {

struct Settings;
struct Ui;

/// The windows that panels always have are open until the user closes them; further ones are open
/// from open_another until then.
bool is_open(const Ui& ui, const PanelWindow& window);
void set_open(Ui& ui, const PanelWindow& window, bool open);

Layout layout_of(const Ui& ui);
/// Shows another layout as the user left it, or as it is at first. The one before is kept.
void switch_layout(Ui& ui, Layout to);

/// The first open panel of each place, the main one last: it gets the focus.
std::vector<std::string> front_panels(const Ui& ui);

/// Brings the window with this id to the front and opens it if it is closed.
void show_panel(Ui& ui, std::string_view id);

/// The states of the windows with this number.
PanelStates& states_of(Ui& ui, int number);
const PanelStates& states_of(const Ui& ui, int number);

/// The window of a panel that the user means: the focused one, or else the first open one.
PanelWindow meant_window(const Ui& ui, std::string_view panel_id);

bool can_open_another(const Ui& ui, const PanelRow& row);
/// Opens a window beside this one that shows the same, and brings it to the front.
void open_another(Ui& ui, const PanelWindow& like);

/// Tells the workspace which windows need views.
void show_open_windows(Ui& ui);

/// What further windows show, to and from the settings.
void remember_windows(const Ui& ui, Settings& settings);
void restore_windows(Ui& ui);

}  // namespace app
