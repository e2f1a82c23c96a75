#pragma once

#include "app/workspace/capture_session.h"
#include "app/workspace/documents.h"
#include "app/workspace/exports.h"
#include "app/workspace/panel_events.h"
#include "app/workspace/predictions.h"
#include "app/workspace/selection_history.h"
#include "app/workspace/slots.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the window shows. The parts stand each in its own file: documents, selection and time axis,
/// slots, captures, exports. The workspace keeps them consistent.
///
///     each frame   update()          takes finished work; orders views that are wanted now
///                  panels draw       from the const workspace; they return events
///                  apply(events)     after all panels have been drawn
namespace app {

class Workspace {
public:
    ~Workspace() { predictor_.cancel(); }  // the slots wait for their running work

    // ---- the parts ------------------------------------------------------------------------
    const std::vector<DocumentPtr>& documents() const { return documents_.all(); }
    /// Name and colour of each document, in the same order.
    const std::vector<DocumentLook>& looks() const { return looks_; }
    std::optional<Documents::Loading> loading() const { return documents_.loading(); }
    const Selection& selection() const { return selection_; }
    const TimeAxis& time() const { return time_; }
    const LedgerQuery& ledger_query() const { return ledger_query_; }
    const PlanChoice& plan_choice() const { return plan_choice_; }
    /// All GPUs that recipes can be planned for.
    const std::vector<profiler::Gpu>& gpus() const { return predictor_.gpus(); }
    /// The comparison, with the plan once that is made; null: there is none.
    const CompareResult* comparison() const;
    /// The recipe that the user wants to see and that is being predicted; empty: none.
    const std::string& wanted_recipe() const { return wanted_recipe_; }
    /// What B saves against A and costs, and what is planned; empty: they cannot be compared.
    const std::string& headline() const { return headline_; }
    const FlameQuery& flame_query() const { return flame_query_; }
    const BlocksQuery& blocks_query() const { return blocks_query_; }
    const PlannerQuery& planner_query() const { return planner_query_; }
    /// The views, always those of the selected A and B.
    const Slots& slots() const { return slots_; }
    const CaptureSession& capture() const { return capture_; }

    // ---- details that are read when the mouse asks for them ---------------------------------
    /// The document behind a column of the comparison: its captured step if there is one, else its
    /// sweep.
    DocumentPtr document_of_column(size_t column) const;
    /// The open step that differs from A in its recipe only and has this recipe, or else null.
    DocumentPtr document_of_recipe(const std::string& recipe) const;
    /// Trace 0 is A, trace 1 is B.
    profiler::TimelineReadout read_timeline(size_t trace, double time_ns) const;
    profiler::ActivityReadout read_activity(size_t trace, profiler::ActivityId id) const;
    profiler::BlockReadout read_block(size_t trace,
                                      profiler::Id<profiler::Allocation> allocation) const;

    // ---- commands of menu, shortcuts and dialogs --------------------------------------------
    /// Starts reading files; a folder stands for the traces in it.
    void open(const std::vector<std::filesystem::path>& files) { documents_.open(files); }
    void add(DocumentPtr document);
    void close(DocumentPtr document);  // by value: the caller may pass selection().a
    void set_a(DocumentPtr document);
    void set_b(DocumentPtr document);  // null: show A alone
    void swap_a_and_b();
    void clear_selection();  // all but A and B
    /// Selects what was selected before (-1), or again what came after it (1).
    bool can_step_selection(int direction) const { return history_.can_step(direction); }
    void step_selection(int direction);
    void fit_time() { time_.fit(); }
    void export_comparison(const std::filesystem::path& file, bool dark);
    void export_timeline(const std::filesystem::path& file, bool dark);
    void notify(profiler::Severity severity, std::string text);

    // ---- each frame -------------------------------------------------------------------------
    void update();
    void apply(const PanelEvents& events);

    /// Whether something that panels show has been replaced since the last call. Tables and layouts
    /// then need a few frames to settle.
    bool take_changed() { return std::exchange(changed_, false); }
    /// Nothing loads and every view is the one that is wanted.
    bool settled() const;
    /// Sentences for the user, and files that were opened, since the last call.
    std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
    std::vector<std::filesystem::path> take_opened() { return std::exchange(opened_, {}); }

private:
    SlotInputs slot_inputs() const {
        const profiler::WhatIfView* const what_if = slots_.what_if.view();
        return {documents(),   selection_,     time_,
                ledger_query_, plan_choice_,   flame_query_,
                blocks_query_, planner_query_, what_if ? what_if->layout : nullptr};
    }
    void take_captured();
    void take_loaded();
    void update_slots();
    void documents_changed();
    void selection_changed();
    void update_looks();
    void notify_all(std::vector<Notice> notices);
    void apply_to_documents(const PanelEvents& events);
    void apply_to_captures(const PanelEvents& events);
    void apply_to_selection(const PanelEvents& events);
    void try_recipe(const std::string& recipe);
    std::optional<StepToPredict> step_with(const std::string& recipe) const;
    void show_wanted_recipe();
    std::vector<StepToPredict> steps_one_switch_away() const;
    void predict_ahead();
    void update_headline();
    void select_tensor(const PickedTensor& picked);
    void apply_to_time(const PanelEvents& events);

    Documents documents_;
    std::vector<DocumentLook> looks_;
    Selection selection_;
    SelectionHistory history_;
    TimeAxis time_;
    LedgerQuery ledger_query_;
    PlanChoice plan_choice_;
    FlameQuery flame_query_;
    BlocksQuery blocks_query_;
    PlannerQuery planner_query_;
    Predictor predictor_;
    Predictions predictions_{predictor_};
    /// Still to be predicted ahead; empty: not yet known for these views.
    std::optional<std::vector<StepToPredict>> ahead_;
    bool predicts_ahead_ = false;  // a panel was drawn whose switches ask for predictions
    std::string wanted_recipe_;    // to show as B once it is predicted; empty: none
    Slots slots_{predictor_};
    CaptureSession capture_;
    Exports exports_;
    std::string headline_;
    std::vector<Notice> notices_;
    std::vector<std::filesystem::path> opened_;
    bool changed_ = false;
};

}  // namespace app
