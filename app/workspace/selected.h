#pragma once

#include "app/workspace/panel_events.h"

/// What was picked in one panel, as all panels show it: named, and in its place on the shared time
/// axis.
namespace app {

/// `alignment` is that of A and B; null without one of them.
SelectedTensor select(const profiler::LedgerViewRow& row, const Document& document,
                      const profiler::Alignment* alignment);
SelectedActivity select(const PickedActivity& picked, const Document& document,
                        const profiler::Alignment* alignment);

}  // namespace app
