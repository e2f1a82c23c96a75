#pragma once

#include "app/workspace/capture_session.h"
#include "app/workspace/document.h"
#include "app/workspace/exports.h"
#include "app/workspace/frontier_plans.h"
#include "app/workspace/jobs/file_watch.h"
#include "app/workspace/look_ahead.h"
#include "app/workspace/panel_events.h"
#include "app/workspace/pending_pairs.h"
#include "app/workspace/program_jobs.h"
#include "app/workspace/selection.h"
#include "app/workspace/slots.h"

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the window shows. Each part has its own file: documents, selection and time axis,
/// slots, captures, exports. The workspace keeps them consistent.
///
///     each frame   update()          takes finished work; orders views that are wanted now
///                  panels draw       from the const workspace; they return events
///                  apply(events)     after all panels have been drawn
namespace app {

class Workspace {
public:
    Workspace() { views_.front().open = {true, true, true, true}; }
    ~Workspace() { predictor_.cancel(); }  // the slots wait for their running work

    // ---- the parts ------------------------------------------------------------------------
    const std::vector<DocumentPtr>& documents() const { return documents_.all(); }
    /// Name and colour of each document, in the same order.
    const std::vector<DocumentLabel>& labels() const { return labels_; }
    /// The colours (for recipe_color) of the recipes that a panel names. Recipes of open traces and
    /// of the comparison keep their colours.
    std::vector<size_t> colors_of(const std::vector<std::string>& recipes) const;
    std::optional<Documents::Loading> loading() const { return documents_.loading(); }
    const Selection& selection() const { return selection_; }
    const TimeAxis& time() const { return time_; }
    /// All GPUs that recipes can be planned for.
    const std::vector<profiler::Gpu>& gpus() const { return predictor_.gpus(); }
    /// The comparison, with the plan once that is made; null: there is none.
    std::shared_ptr<const CompareResult> comparison() const;
    /// The recipe that the user wants to see and that is being predicted; empty: none.
    const std::string& wanted_recipe() const { return look_ahead_.wanted(); }
    /// What the user waits for besides files and captures, and may cancel
    /// (PanelEvents::cancel_work).
    struct Work {
        std::string text;             // "Predicting gelu=in_place"
        std::optional<double> share;  // that is done, in [0, 1]; empty: not known
    };
    std::optional<Work> work() const;
    /// Documents::prediction.
    DocumentPtr prediction() const { return documents_.prediction(); }
    /// How many steps were traced for predictions and plans so far.
    size_t traces_asked() const { return predictor_.traces_asked(); }
    /// All that is one switch away is made, as far as it can be predicted.
    bool is_made_ahead() const;
    /// What B saves against A and costs, and what is planned; empty: they cannot be compared.
    const std::string& headline() const { return headline_; }
    /// The same in figures: what B allows on the chosen GPU, and what it costs.
    const std::vector<profiler::PairFigure>& pair_figures() const { return pair_figures_; }
    const PanelQueries& queries() const { return queries_; }
    const FrontierPlans& frontier_plans() const { return frontier_plans_; }
    /// The views, always those of the selected A and B.
    const Slots& slots() const { return slots_; }
    /// The views of the windows with this number, from 1 to kMostWindows.
    const WindowViews& views(int number = 1) const { return views_.at(index_of(number)); }
    const CaptureSession& capture() const { return capture_; }
    /// Programs of the user's that run, and what runs with remedies came to.
    const ProgramJobs& programs() const { return programs_; }
    /// Why a capture cannot start; empty: it can.
    std::string problem_of(const StepForm& form) const { return app::problem_of(form, predictor_); }
    /// What the workers of predictions wrote to standard output and error.
    std::string prediction_log() const { return predictor_.log(); }

    // ---- details that are read when the mouse asks for them ---------------------------------
    /// The document behind a column of the comparison: its captured step if there is one, else its
    /// sweep.
    DocumentPtr document_of_column(size_t column) const;
    /// The open step that differs from A in its recipe only and has this recipe, or else null.
    DocumentPtr document_of_recipe(const std::string& recipe) const {
        return app::document_of_recipe(documents(), selection_, recipe);
    }
    /// What another recipe changes against B, or against A where there is no B: rows of
    /// profiler::switch_effect. nullopt: the recipe is not predicted yet.
    using Rows = std::vector<std::pair<std::string, std::string>>;
    std::optional<Rows> effect_of(const std::string& recipe) const;
    /// The peak with another recipe minus the peak of what is shown. nullopt: not known yet, or
    /// memory ran out in one of them.
    std::optional<int64_t> peak_change_bytes(const std::string& recipe) const;
    /// Trace 0 is A, trace 1 is B.
    profiler::TimelineReadout read_timeline(size_t trace, double time_ns) const;
    profiler::KernelsReadout read_kernels(size_t trace, profiler::CallId id) const;
    profiler::RibbonReadout read_module(size_t trace, profiler::ModuleLevel level,
                                        size_t span) const;
    /// A block of the trace that a window with this query shows.
    profiler::BlockReadout read_block(const BlocksQuery& query,
                                      profiler::Id<profiler::Allocation> allocation) const;

    // ---- commands of menu, shortcuts and dialogs --------------------------------------------
    /// Starts reading files; a folder stands for the traces in it.
    void open(const std::vector<std::filesystem::path>& files) { documents_.open(files); }
    /// A and B among the files that are being read, unless the user chooses before that.
    void choose_when_read(std::filesystem::path a, std::filesystem::path b) {
        wanted_pair_ = {std::move(a), std::move(b)};
    }
    /// Opens the traces that come with the program.
    void open_examples();
    void add(DocumentPtr document);
    void close(DocumentPtr document);  // by value: the caller may pass selection().a
    /// Another A or B appears once its views are made; until then the window shows the old pair.
    void set_a(DocumentPtr document);
    void set_b(DocumentPtr document);  // null: show A alone
    void swap_a_and_b();
    /// Lets the prediction (Documents::prediction) stay open when another recipe is tried.
    void keep_prediction() { documents_.keep_prediction(); }
    void clear_selection();  // all but A and B
    /// Selects what was selected before (-1), or again what came after it (1).
    bool can_step_selection(int direction) const { return history_.can_step(direction); }
    void step_selection(int direction);
    void fit_time() { time_.fit(); }
    /// Which windows are open, by number. The others get no views.
    void show_windows(const std::array<OpenPanels, kMostWindows>& open) {
        for (size_t i = 0; i < views_.size(); ++i) views_[i].open = open[i];
    }
    /// What is searched in A and B; slots().search holds what was found.
    void search(SearchQuery query) { queries_.search = std::move(query); }
    /// Selects a call or kernel of A or B, and moves the time axis to it.
    void find_call(const PickedCall& picked);
    void export_comparison(const std::filesystem::path& file, const ChartStyle& style);
    void export_timeline(const std::filesystem::path& file, const ChartStyle& style);
    /// Tables, and what was copied.
    Exports& exports() { return exports_; }
    void notify(profiler::Severity severity, std::string text);
    /// Whether files that change on disk are read again at once. Otherwise a notice offers it.
    void reload_changed_files(bool at_once) { reloads_at_once_ = at_once; }

    // ---- each frame -------------------------------------------------------------------------
    void update();
    /// `window`: the number of the window that they come from.
    void apply(const PanelEvents& events, int window = 1);

    /// Whether something that panels show has been replaced since the last call. Tables and layouts
    /// then need a few frames to settle.
    bool take_changed() { return std::exchange(changed_, false); }
    /// Nothing loads, and every view answers its newest order.
    bool settled() const;
    /// Sentences for the user, and files that were opened, since the last call.
    std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
    std::vector<std::filesystem::path> take_opened() { return std::exchange(opened_, {}); }
    /// Whether more traces are open than at the last call, because files were read.
    bool take_has_more() { return std::exchange(has_more_, false); }

private:
    struct RecipeChange {
        DocumentPtr before;  // B as shown; A without a B
        DocumentPtr after;   // the same step with another recipe
    };
    /// nullopt: the two do not compare, or the recipe was not predicted yet.
    std::optional<RecipeChange> find_change(const std::string& recipe) const;
    std::optional<int64_t> find_peak_change(const std::string& recipe) const;
    static size_t index_of(int number) { return static_cast<size_t>(number) - 1; }
    /// Of the pair that the window shows, or of another one (not null).
    WorkspaceState state(const PendingPair* next = nullptr) const;
    GpuForm gpu_form_beside(const DocumentPtr& a) const;
    LookAhead::Inputs look_ahead_inputs() const;
    DocumentLabel label_of(const DocumentPtr& document) const;
    void show(Pair pair);
    void show(PendingPair& next);
    void show_next_pair();
    Pair latest_pair() const;
    void refresh(PendingPair& next) const;
    std::vector<PairMaker::Make> missing_of(const PendingPairPtr& next, bool with_plans);
    void forget_ahead();
    void check_ahead();
    void make_ahead();
    void pair_changed();
    void cancel_work();
    void take_captured();
    void take_programs();
    void take_loaded();
    void take_changed_files();
    void take_predicted();
    void update_slots();
    void choose_wanted_pair();
    void documents_changed();
    void forget_document(const DocumentPtr& document);
    void selection_changed();
    void forget_all_places();
    void update_labels();
    void notify_all(std::vector<Notice> notices);
    void apply_part(const TraceEvents& events);
    void apply_part(const CaptureEvents& events);
    void apply_part(const RecipeEvents& events);
    void apply_part(const SelectionEvents& events);
    void apply_part(const TimeEvents& events);
    void apply_part(const WindowEvents& events, WindowQueries& queries);
    void apply_part(const QueryEvents& events);
    void apply_part(const AdviceEvents& events);
    void try_remedy(const std::string& id);
    const profiler::Gpu* gpu_of(const DocumentPtr& document) const;
    void choose_gpu(const GpuForm& form);
    void show_wanted_recipe();
    void plan_usual_recipes();
    void plan_frontier();
    void update_headline();
    void select_tensor(const PickedTensor& picked);
    bool select_call(const PickedCall& picked);

    Documents documents_;
    FileWatch watch_;
    bool reloads_at_once_ = false;
    std::vector<DocumentLabel> labels_;
    Selection selection_;
    std::array<std::filesystem::path, 2> wanted_pair_;  // choose_when_read; empty: none
    std::array<DocumentPtr, 2> shown_pair_;  // A and B when selection_changed was last called
    SelectionHistory history_;
    TimeAxis time_;
    PanelQueries queries_;
    std::optional<StepPlanRequest> usual_request_;  // of slots().usual_plan
    Predictor predictor_;
    LookAhead look_ahead_{predictor_};
    FrontierPlans frontier_plans_{predictor_};
    bool grows_frontier_ = false;  // the panel was drawn since the last update
    bool predicts_ahead_ = false;  // a panel was drawn whose switches ask for predictions
    Slots slots_{predictor_};
    std::array<WindowViews, kMostWindows> views_;  // by number
    CaptureSession capture_{predictor_};
    ProgramJobs programs_;
    Exports exports_;
    PendingPairs pending_;  // it writes into the slots
    std::string headline_;
    std::vector<profiler::PairFigure> pair_figures_;
    std::vector<Notice> notices_;
    std::vector<std::filesystem::path> opened_;
    bool has_more_ = false;
    bool changed_ = false;
};

}  // namespace app
