#pragma once

#include "app/panels/memory/blocks_panel.h"

namespace app {

/// Other settings of the allocator, what they would do beside what was recorded, and a table of
/// settings that are worth a try.
void draw_what_if(const PanelContext& context, WhatIfState& state, PanelEvents& events);

/// Buttons that choose whose segments are shown, while settings are tried.
void draw_segment_choice(const PanelContext& context, PanelEvents& events);

}  // namespace app
