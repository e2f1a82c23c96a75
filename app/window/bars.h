#pragma once

/// The window's edges: menu and tool bar above, status bar below, and the list of keys.
namespace app {

struct Ui;

void draw_menu_bar(Ui& ui);
void draw_tool_bar(Ui& ui);
void draw_status_bar(const Ui& ui);
void draw_keys_window(Ui& ui);

}  // namespace app
