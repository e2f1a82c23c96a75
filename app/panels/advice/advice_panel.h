#pragma once

#include "app/panels/parts/panel_context.h"

#include <string>

/// What to do: a card for each remedy, best first, and what is unusual.
namespace app {

struct AdviceState {
    std::string open_card;   // its remedy; empty: the first one
    bool is_closed = false;  // the user closed the open card
};

PanelEvents draw_advice_panel(const PanelContext& context, AdviceState& state);

}  // namespace app
