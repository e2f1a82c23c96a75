#pragma once

#include "app/workspace/view_slot.h"
#include "profiler/view/movement_view.h"

#include <optional>
#include <string>
#include <vector>

/// From the state of the workspace to the view of the Movement panel.
namespace app {

struct SlotInputs;

/// What the Movement panel shows.
struct MovementQuery {
    profiler::MovementOps ops = profiler::MovementOps::kRun;
    profiler::MovementScope scope = profiler::MovementScope::kLayers;
    profiler::MovementColumn sort_by = profiler::MovementColumn::kTime;
    bool descending = true;
    std::string gpu;        // id of the card whose roofline is drawn; empty: of the trace's own
    bool is_drawn = false;  // the panel has been drawn; before that its view is not built

    friend bool operator==(const MovementQuery&, const MovementQuery&) = default;
};

/// The request without the peaks, which are looked up on the slot's thread.
struct MovementQuestion {
    std::vector<DocumentPtr> documents;  // A, or A and B
    MovementQuery query;
    std::string usual_gpu;                             // id: for logical ops of a CPU's trace
    const std::vector<profiler::Gpu>* gpus = nullptr;  // borrowed: the catalogue

    friend bool operator==(const MovementQuestion&, const MovementQuestion&) = default;
};

std::optional<Wanted<MovementQuestion>> wanted_movement(const SlotInputs& inputs);
profiler::MovementView build_movement(const MovementQuestion& question);

}  // namespace app
