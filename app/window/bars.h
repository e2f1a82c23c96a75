#pragma once

#include <string>

/// The window's edges: menu and tool bar above, status bar below, and the list of keys.
namespace app {

struct Selection;
struct Ui;

/// The selected range and tensor in one line; empty when there is neither.
std::string describe_selection(const Selection& selection);

void draw_menu_bar(Ui& ui);
void draw_tool_bar(Ui& ui);
void draw_status_bar(const Ui& ui);
void draw_keys_window(Ui& ui);

}  // namespace app
