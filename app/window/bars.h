#pragma once

#include <string>

/// Menu bar and tool bar at the top of the window, and the status bar at the bottom.
namespace app {

struct Selection;
struct Ui;

/// The selected range and tensor in one line; empty if nothing is selected.
std::string describe_selection(const Selection& selection);

/// What the mouse does in the panel that it was last over.
std::string hints_of(const Ui& ui);

void draw_menu_bar(Ui& ui);
void draw_tool_bar(Ui& ui);
void draw_status_bar(Ui& ui);

}  // namespace app
