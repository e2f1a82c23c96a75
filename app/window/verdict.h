#pragma once

/// The verdict line below the tool bar: what happened, or what B changes. It is always there while
/// a trace is open.
namespace app {

struct Ui;

void draw_verdict(Ui& ui);

}  // namespace app
