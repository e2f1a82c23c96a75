#pragma once

#include "app/widgets/command_palette.h"
#include "app/workspace/search_requests.h"

#include <array>
#include <memory>
#include <string>

/// What the palette finds, and stepping through everything of one name.
namespace app {

struct Ui;

/// The name that was chosen last, and which of its places is selected.
struct Found {
    std::shared_ptr<const profiler::SearchIndex> index;  // null: nothing was chosen
    std::size_t name = 0;
    std::size_t at = 0;
    std::array<std::weak_ptr<const Document>, 2> documents;  // the A and B that were searched
};

/// Commands, open traces, recent files, and what A and B hold, for the text in the palette.
PaletteContent palette_content(Ui& ui, const std::string& query);

/// Selects the next place of the chosen name (1) or the one before (-1), as a click on it does, and
/// brings a panel that shows it to the front.
void step_found(Ui& ui, int direction);

/// "aten::addmm, 3 of 144 in A"; empty if nothing was chosen.
std::string describe_found(const Ui& ui);

}  // namespace app
