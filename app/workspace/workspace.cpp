#include "app/workspace/workspace.h"

#include "app/user/examples.h"
#include "app/workspace/planner_form.h"
#include "models/config/layer_recipes.h"
#include "profiler/view/programs/pair_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace app {
namespace {

namespace fs = std::filesystem;

bool has_file(const profiler::ComparisonColumn& column, const fs::path& file) {
    return std::find(column.files.begin(), column.files.end(), file.string()) != column.files.end();
}

std::optional<size_t> column_of(const profiler::Comparison& comparison, const Document& document) {
    for (size_t i = 0; i < comparison.columns.size(); ++i) {
        if (has_file(comparison.columns[i], document.file)) return i;
    }
    return std::nullopt;
}

/// " On NVIDIA T4 it would fit a batch of 12 instead of 7."
std::string planned_sentence(const std::string& gpu, const profiler::PlanRow& own,
                             const profiler::PlanRow& other) {
    if (own.max_batch_size.value_or(0) == 0) {
        // Else the GPU cannot run it, or planning failed: Compare says so where the bar would be.
        return profiler::knows_max_batch(own) ? fmt::format(" On {} no batch of it would fit.", gpu)
                                              : "";
    }
    if (own.max_batch_size == other.max_batch_size) {
        return fmt::format(" On {} both would fit a batch of {}.", gpu,
                           profiler::max_batch_text(own));
    }
    return fmt::format(" On {} it would fit a batch of {} instead of {}.", gpu,
                       profiler::max_batch_text(own), profiler::max_batch_text(other));
}

/// The axis of another pair, as wide as the panels are now.
void fit_widths(TimeAxis& time, const TimeAxis& now) {
    time.window.width_px = now.window.width_px;
    time.kernels_width_px = now.kernels_width_px;
    time.lane_width_px = now.lane_width_px;
    time.insets = now.insets;
}

const profiler::Comparison* comparison_of(const Slots& slots) {
    const CompareResult* result = slots.compare.view();
    return result ? &result->comparison : nullptr;
}

}  // namespace

// ---- documents ------------------------------------------------------------------------------

void Workspace::add(DocumentPtr document) {
    const DocumentPtr replaced = documents_.add(document);
    if (replaced) forget_document(replaced);
    if (replaced && selection_.a == replaced) selection_.a = document;
    if (replaced && selection_.b == replaced) selection_.b = document;
    documents_changed();
    choose_wanted_pair();
}

void Workspace::choose_wanted_pair() {
    if (selection_.chosen) wanted_pair_ = {};
    const auto& [file_a, file_b] = wanted_pair_;
    if (file_a.empty()) return;
    const auto find = [&](const fs::path& file) {
        const auto found = std::find_if(documents().begin(), documents().end(),
                                        [&](const auto& one) { return one->file == file; });
        return found == documents().end() ? nullptr : *found;
    };
    const DocumentPtr a = find(file_a), b = file_b.empty() ? nullptr : find(file_b);
    if (a && file_b.empty()) {
        show(Pair{a, nullptr});
    } else {
        if (a) set_a(a);
        if (b && b != latest_pair().a) set_b(b);
    }
    selection_.chosen = a && (b || file_b.empty());
    if (selection_.chosen) wanted_pair_ = {};
}

void Workspace::close(DocumentPtr document) {
    if (selection_.a == document) selection_.a = nullptr;
    if (selection_.b == document) selection_.b = nullptr;
    forget_document(document);
    documents_.close(document);
    watch_.forget(document->file);
    documents_changed();
}

/// Nothing that is shown next is of this document.
void Workspace::forget_document(const DocumentPtr& document) {
    const Pair latest = latest_pair();
    if (latest.a == document || latest.b == document) pending_.take_unmade();
    forget_ahead();
}

void Workspace::documents_changed() {
    if (documents().empty()) selection_.chosen = false;
    choose_defaults(selection_, documents());
    selection_changed();
}

DocumentPtr Workspace::document_of_column(size_t column) const {
    const profiler::Comparison* comparison = comparison_of(slots_);
    if (!comparison || column >= comparison->columns.size()) return nullptr;
    const profiler::ComparisonColumn& wanted = comparison->columns[column];
    DocumentPtr with_file;
    for (const DocumentPtr& document : documents()) {
        if (wanted.step_trace && document->trace == wanted.step_trace) return document;
        if (!with_file && has_file(wanted, document->file)) with_file = document;
    }
    return with_file;
}

std::shared_ptr<const CompareResult> Workspace::comparison() const {
    auto planned = slots_.planned_compare.shared();
    return planned ? std::move(planned) : slots_.compare.shared();
}

void Workspace::update_headline() {
    headline_.clear();
    pair_figures_.clear();
    const auto result = comparison();
    if (!result || !selection_.a) return;
    const auto& columns = result->comparison.columns;
    const auto a = column_of(result->comparison, *selection_.a);
    if (a && !selection_.b) {
        pair_figures_ = profiler::pair_figures(result->comparison, result->view, *a, std::nullopt);
    }
    if (!a || !selection_.b) return;
    const auto b = column_of(result->comparison, *selection_.b);
    if (!b || *a == *b) return;
    // Columns of one step have the same baseline; else more than the recipe differs.
    if (columns[*a].baseline != columns[*b].baseline) return;
    pair_figures_ = profiler::pair_figures(result->comparison, result->view, *a, b);
    headline_ = profiler::quote_pair(columns[*b], columns[*a]);
    const auto& planned_a = result->view.columns[*a].planned;
    const auto& planned_b = result->view.columns[*b].planned;
    if (headline_.empty() || !planned_a || !planned_b) return;
    headline_ += planned_sentence(result->view.planned_on, *planned_b, *planned_a);
}

/// Until the comparison knows a document, its label is its recipe with the recipe's colour.
void Workspace::update_labels() {
    const profiler::Comparison* comparison = comparison_of(slots_);
    const std::vector<size_t> colors =
        comparison ? profiler::comparison_colors(*comparison) : std::vector<size_t>();
    std::vector<std::string> recipes;
    for (const DocumentPtr& document : documents()) recipes.push_back(document->recipe);
    const std::vector<size_t> own_colors = profiler::recipe_color_indices(recipes);
    labels_.clear();
    for (const DocumentPtr& document : documents()) {
        DocumentLabel label{document->recipe, own_colors[labels_.size()]};
        if (const auto i = comparison ? column_of(*comparison, *document) : std::nullopt) {
            label = {comparison->columns[*i].recipe, colors[*i]};
        }
        if (document == selection_.a) selection_.label_a = label;
        if (document == selection_.b) selection_.label_b = label;
        labels_.push_back(std::move(label));
    }
}

std::vector<size_t> Workspace::colors_of(const std::vector<std::string>& recipes) const {
    std::unordered_map<std::string, size_t> known;
    if (const profiler::Comparison* comparison = comparison_of(slots_)) {
        const std::vector<size_t> colors = profiler::comparison_colors(*comparison);
        for (size_t i = 0; i < colors.size(); ++i) {
            known.emplace(models::canonical_recipe(comparison->columns[i].recipe_of_trace),
                          colors[i]);
        }
    }
    for (size_t i = 0; i < labels_.size(); ++i) {
        known.emplace(models::canonical_recipe(documents()[i]->recipe), labels_[i].color);
    }
    for (const std::string& recipe : recipes) {
        const auto found = known.find(models::canonical_recipe(recipe));
        if (found == known.end()) continue;
        const size_t color = found->second;
        known.emplace(recipe, color);
    }
    return profiler::recipe_color_indices(recipes, known);
}

/// Of a document that is not open: what the comparison will call it if no other has its recipe.
DocumentLabel Workspace::label_of(const DocumentPtr& document) const {
    const auto found = std::find(documents().begin(), documents().end(), document);
    if (found == documents().end()) return {document->recipe, 0};
    return labels_[static_cast<size_t>(found - documents().begin())];
}

// ---- selection ------------------------------------------------------------------------------

void Workspace::set_a(DocumentPtr document) {
    const Pair now = latest_pair();
    if (document == now.a) return;
    show({document, document && document == now.b ? now.a : now.b});
}

void Workspace::set_b(DocumentPtr document) {
    const Pair now = latest_pair();
    if (document == now.b) return;
    if (document && document == now.a) return swap_a_and_b();
    show({now.a, std::move(document)});
}

void Workspace::swap_a_and_b() {
    const Pair now = latest_pair();
    if (now.a && now.b) show({now.b, now.a});
}

void Workspace::clear_selection() {
    selection_.category.reset();
    selection_.layers.reset();
    forget_places(selection_);
    history_.observe(selection_);
}

void Workspace::step_selection(int direction) {
    history_.step(direction, selection_);
    if (selection_.tensor) time_.reveal(*selection_.tensor);
}

/// What is selected and pinned belonged to other documents, or to another time axis.
void Workspace::forget_all_places() {
    forget_places(selection_);
    for (WindowViews& views : views_) views.queries.inspector = {};
    history_.restart(selection_);
}

/// A or B may be another document.
void Workspace::selection_changed() {
    time_.align(selection_);
    pair_changed();
}

/// Range, tensor and call belonged to the documents before. The slots are updated at once, so that
/// no panel draws the old views with the new selection.
void Workspace::pair_changed() {
    std::array pair{selection_.a, selection_.b};
    if (pair != shown_pair_) forget_all_places();
    if (pair[0] != shown_pair_[0]) queries_.advice = {};
    shown_pair_ = std::move(pair);
    queries_.plan = gpu_form_beside(selection_.a);
    changed_ = true;
    check_ahead();
    update_labels();
    update_headline();
    update_slots();
}

// ---- what the window shows next -------------------------------------------------------------

void Workspace::show(Pair pair) {
    if (!pair.a) return;
    pending_.wait_no_longer();
    if (pair.a == selection_.a && pair.b == selection_.b) return;
    pending_.wait_for(std::move(pair));
    // Without a picture there is none to keep.
    if (!selection_.a || !slots_.compare.view()) return show(*pending_.take_unmade());
    show_next_pair();
}

/// What the window shows, or will show next.
Pair Workspace::latest_pair() const {
    const PendingPair* const next = pending_.next();
    return next ? next->pair : Pair{selection_.a, selection_.b};
}

/// What the requests of its views are made from, which may have changed since.
void Workspace::refresh(PendingPair& next) const {
    next.selection = selection_;
    forget_places(next.selection);
    next.selection.a = next.pair.a;
    next.selection.b = next.pair.b;
    if (next.pair.a) next.selection.label_a = label_of(next.pair.a);
    if (next.pair.b) next.selection.label_b = label_of(next.pair.b);
    next.documents =
        next.pair.prediction ? documents_.with_prediction(*next.pair.prediction) : documents_.all();
    const auto& open = next.documents;
    if (std::find(open.begin(), open.end(), next.pair.a) == open.end()) {
        next.documents.push_back(next.pair.a);
    }
    if (next.time.window.alignment != time_.window.alignment) next.is_aligned = false;
    if (!next.is_aligned) next.time = time_;
    fit_widths(next.time, time_);
    next.queries = queries_;
    next.queries.plan = gpu_form_beside(next.pair.a);
    next.queries.search = {};
    if (next.pair.a != selection_.a) next.queries.advice = {};
}

/// The calls that are marked and the recipe that is planned belong to the pair that is shown.
WorkspaceState Workspace::state(const PendingPair* next) const {
    return {.documents = next ? next->documents : documents(),
            .selection = next ? next->selection : selection_,
            .time = next ? next->time : time_,
            .queries = next ? next->queries : queries_,
            .frontier_plans = frontier_plans_,
            .usual_request = usual_request_,
            .marks = next ? nullptr : slots_.marks.shared(),
            .rank_run = slots_.rank_run.shared(),
            .usual_plan = slots_.usual_plan.shared(),
            .recipe_being_planned = next ? std::string() : look_ahead_.being_planned(),
            .trials = programs_.trials_of(next ? next->selection.a : selection_.a),
            .planner_data = predictor_.data()};
}

/// How to make what the pair lacks; empty: it can be shown. Plans take longer than the rest and
/// are made `with_plans` only.
std::vector<PairMaker::Make> Workspace::missing_of(const PendingPairPtr& next, bool with_plans) {
    refresh(*next);
    if (!next->is_aligned) return {align(next)};
    std::vector<PairMaker::Make> makes;
    const auto add = [&](auto& slot, const auto& inputs, bool long_ones) {
        if (slot.is_long() && !long_ones) return;
        if (auto make = slot.make_ahead(inputs)) makes.push_back(std::move(make));
    };
    const WorkspaceState shared = state(next.get());
    std::apply([&](auto&... slot) { (add(slot, shared, with_plans), ...); }, slots_.all());
    for (WindowViews& views : views_) {
        WindowQueries queries = views.queries;
        queries.inspector = {};  // what is pinned belongs to the pair before
        const WindowState inputs{shared, queries, views.open, nullptr};
        std::apply([&](auto&... slot) { (add(slot, inputs, false), ...); }, views.all());
    }
    return makes;
}

void Workspace::show_next_pair() {
    const auto missing = [this](const auto& next) {
        return missing_of(next, /*with_plans=*/false);
    };
    if (const PendingPairPtr made = pending_.take_made(missing)) show(*made);
}

void Workspace::show(PendingPair& next) {
    refresh(next);
    if (next.pair.prediction) documents_.show_prediction(*next.pair.prediction);
    if (!documents_.is_open(next.pair.a)) documents_.add(next.pair.a);
    // A prediction that others are compared with stays open.
    if (documents_.prediction() == next.pair.a) documents_.keep_prediction();
    const bool has_other_a = selection_.a != next.pair.a;
    selection_.a = next.pair.a;
    selection_.b = next.pair.b;
    if (next.is_aligned) {
        time_ = next.time;
        pair_changed();
    } else {
        selection_changed();
    }
    if (has_other_a) forget_ahead();  // the slots have taken what they need
}

/// Nothing that was made ahead fits any more: A, or an open trace, is another one.
void Workspace::forget_ahead() {
    pending_.forget_ahead();
    look_ahead_.forget_ahead();
    const auto forget = [](auto&... slot) { (slot.forget_cached(), ...); };
    std::apply(forget, slots_.all());
    for (WindowViews& views : views_) std::apply(forget, views.all());
}

bool Workspace::is_made_ahead() const {
    return look_ahead_.is_idle() && look_ahead_.knows_ahead() && pending_.are_made_ahead();
}

void Workspace::check_ahead() {
    look_ahead_.forget_ahead();
    pending_.check_ahead();
}

/// Only while the switches are in sight, and the user waits for nothing.
void Workspace::make_ahead() {
    pending_.update_ahead();
    if (!std::exchange(predicts_ahead_, false)) return;
    const profiler::LayerView* view = slots_.layers.view();
    look_ahead_.predict_ahead(look_ahead_inputs(), view);
    if (!view || pending_.is_making_ahead()) return;
    if (auto pairs = look_ahead_.take_known_ahead(look_ahead_inputs(), *view)) {
        pending_.keep_ahead(std::move(*pairs));
    }
    if (!pending_.can_make_ahead() || !settled()) return;
    pending_.make_ahead([this](const auto& next) { return missing_of(next, /*with_plans=*/true); });
}

// ---- views ----------------------------------------------------------------------------------

void Workspace::update_slots() {
    bool views_changed = false;
    const profiler::LayerView* const layers_before = slots_.layers.view();
    const auto update = [&](auto& slot, const auto& inputs) {
        if (!slot.update(inputs)) return;
        changed_ = views_changed = true;
        if (!slot.error().empty()) notify(profiler::Severity::kError, slot.error());
    };
    std::apply([&](auto&... slot) { (update(slot, state()), ...); }, slots_.all());
    for (WindowViews& views : views_) {
        std::apply([&](auto&... slot) { (update(slot, views.state(state())), ...); }, views.all());
    }
    if (!views_changed) return;
    if (slots_.layers.view() != layers_before) check_ahead();  // it lists the switches
    update_labels();  // the comparison gives names and colours
    update_headline();
}

profiler::TimelineReadout Workspace::read_timeline(size_t trace, double time_ns) const {
    return profiler::read_timeline(timeline_request(selection_, time_, time_.window), trace,
                                   time_ns);
}

profiler::KernelsReadout Workspace::read_kernels(size_t trace, profiler::CallId id) const {
    const DocumentPtr& document = trace == 0 ? selection_.a : selection_.b;
    if (!document) return {};
    return profiler::read_kernels(*document->index, id);
}

profiler::RibbonReadout Workspace::read_module(size_t trace, profiler::ModuleLevel level,
                                               size_t span) const {
    const DocumentPtr& document = trace == 0 ? selection_.a : selection_.b;
    if (!document) return {};
    return profiler::read_ribbon(*document->index, level, span);
}

/// Says what becomes of a block of A in B only while the window compares the two.
profiler::BlockReadout Workspace::read_block(const BlocksQuery& query,
                                             profiler::Id<profiler::Allocation> allocation) const {
    const size_t trace = shown_trace(selection_, query);
    profiler::Steps steps = recorded_steps(selection_);
    if (query.show != BlocksQuery::Show::kDifference && trace == 0) steps.b = nullptr;
    return profiler::read_block(steps, trace, allocation);
}

bool Workspace::settled() const {
    const auto all_settled = [](const auto& slots, const auto& inputs) {
        return std::apply([&](const auto&... slot) { return (slot.settled(inputs) && ...); },
                          slots);
    };
    return !pending_.next() && !documents_.busy() && !exports_.busy() && !look_ahead_.busy() &&
           look_ahead_.being_planned().empty() && all_settled(slots_.all(), state()) &&
           std::all_of(views_.begin(), views_.end(), [&](const WindowViews& views) {
               return all_settled(views.all(), views.state(state()));
           });
}

// ---- captures and exports -------------------------------------------------------------------

void Workspace::take_captured() {
    open(capture_.take_finished());
    if (const auto end = capture_.take_end()) notify(end->severity, end->text);
}

/// What a remedy came to is shown as B. The trace of another program is opened, and its verdict is
/// the first that the window says of it.
void Workspace::take_programs() {
    for (models::Result<EndedProgram>& result : programs_.take()) {
        changed_ = true;
        if (!result) {
            notify(profiler::Severity::kError, result.error().message);
            continue;
        }
        EndedProgram& ended = *result;
        if (!ended.trial.problem.empty()) notify(profiler::Severity::kWarning, ended.trial.problem);
        if (!ended.sentence.empty()) notify(profiler::Severity::kInfo, ended.sentence);
        if (!ended.file.empty()) {
            selection_.chosen = false;
            choose_when_read(ended.file, {});
            open({ended.file});
        }
        if (!ended.document) continue;
        const bool is_of_a = ended.of == latest_pair().a;
        selection_.chosen |= is_of_a;
        add(ended.document);
        if (is_of_a) set_b(ended.document);
    }
}

void Workspace::open_examples() {
    const auto files = write_examples(examples_folder());
    if (!files) return notify(profiler::Severity::kError, files.error().message);
    open(*files);
}

void Workspace::take_loaded() {
    const size_t before = documents().size();
    for (DocumentPtr& document : documents_.take_loaded()) {
        // The traces of one capture are one entry among the recent files.
        const fs::path folder = document->file.parent_path();
        if (folder != examples_folder()) {
            opened_.push_back(folder == capture_.folder() ? folder : document->file);
        }
        if (document->stamp) watch_.watch(document->file, *document->stamp);
        add(std::move(document));
    }
    has_more_ |= documents().size() > before;
}

/// What was read stays open until the file has been read again, also if that fails.
void Workspace::take_changed_files() {
    for (const fs::path& file : watch_.take_changed()) {
        if (reloads_at_once_) {
            open({file});
            continue;
        }
        notices_.push_back(
            {.severity = profiler::Severity::kInfo,
             .text = fmt::format("{} has changed on disk.", file.filename().string()),
             .reload = file});
    }
}

void Workspace::export_comparison(const fs::path& file, const ChartStyle& style) {
    if (const auto result = comparison()) exports_.comparison({result, &result->view}, file, style);
}

void Workspace::export_timeline(const fs::path& file, const ChartStyle& style) {
    if (slots_.timeline.view()) exports_.timeline(selection_, time_, file, style);
}

void Workspace::notify(profiler::Severity severity, std::string text) {
    notices_.push_back({severity, std::move(text)});
}

void Workspace::notify_all(std::vector<Notice> notices) {
    for (Notice& notice : notices) notices_.push_back(std::move(notice));
}

// ---- each frame -----------------------------------------------------------------------------

void Workspace::update() {
    take_captured();
    take_programs();
    take_loaded();
    take_predicted();
    plan_frontier();
    take_changed_files();
    update_slots();  // what changes its requests further down sets changed_
    plan_usual_recipes();
    notify_all(documents_.take_notices());
    notify_all(exports_.take_notices());
    show_wanted_recipe();
    show_next_pair();
    make_ahead();
}

/// What recipes are planned for beside this A: the GPU that the user chose, or else A's own.
GpuForm Workspace::gpu_form_beside(const DocumentPtr& a) const {
    if (queries_.plan.is_chosen) return queries_.plan;
    const profiler::Gpu* const own = gpu_of(a);
    return own != nullptr ? GpuForm{.gpu = own->id} : GpuForm();
}

/// Beside a prediction B is predicted for the same GPU, whatever the user plans for.
LookAhead::Inputs Workspace::look_ahead_inputs() const {
    const DocumentPtr& a = selection_.a;
    const bool a_is_predicted = a && a->trace->run().source == profiler::Source::kPredicted;
    const profiler::Gpu* own = a_is_predicted ? profiler::gpu_of_trace(*a->trace, gpus()) : nullptr;
    return {documents(), selection_, own != nullptr ? own->id : queries_.plan.gpu,
            queries_.plan.gpu, documents_.prediction()};
}

void Workspace::take_predicted() {
    for (std::string& sentence : look_ahead_.update()) {
        notify(profiler::Severity::kError, std::move(sentence));
    }
}

void Workspace::show_wanted_recipe() {
    auto pair = look_ahead_.take_wanted(look_ahead_inputs());
    if (!pair) return notify(profiler::Severity::kWarning, pair.error().message);
    if (!*pair) return;
    selection_.chosen = true;
    show(std::move(**pair));
}

std::optional<Workspace::RecipeChange> Workspace::find_change(const std::string& recipe) const {
    const auto pair = look_ahead_.find_pair(look_ahead_inputs(), recipe);
    if (!pair) return std::nullopt;
    DocumentPtr shown = selection_.b ? selection_.b : selection_.a;
    const DocumentPtr& other = pair->b ? pair->b : pair->a;
    if (!shown->step || !models::comparable(*shown->step, *other->step)) return std::nullopt;
    if (!ran_alike(*shown, *other)) {
        if (selection_.b) return std::nullopt;  // B was measured, or is of another GPU
        shown = pair->a;                        // A as predicted
    }
    if (!shown->has_step || !other->has_step) return std::nullopt;
    return RecipeChange{std::move(shown), other};
}

std::optional<Workspace::Rows> Workspace::effect_of(const std::string& recipe) const {
    const auto change = find_change(recipe);
    const profiler::LayerView* const view = slots_.layers.view();
    if (!change || !view) return std::nullopt;
    return profiler::switch_effect(layer_request(change->before, change->after, view->layers),
                                   view->num_layers);
}

std::optional<int64_t> Workspace::peak_change_bytes(const std::string& recipe) const {
    auto& kept = look_ahead_.peak_changes();
    if (const auto known = kept.find(recipe)) return *known;
    const std::optional<int64_t> change = find_peak_change(recipe);
    kept.add(recipe, change);
    return change;
}

std::optional<int64_t> Workspace::find_peak_change(const std::string& recipe) const {
    const auto change = find_change(recipe);
    if (!change || change->before->is_cut_off || change->after->is_cut_off) return std::nullopt;
    return change->after->index->peak().allocated_bytes -
           change->before->index->peak().allocated_bytes;
}

std::optional<Workspace::Work> Workspace::work() const {
    if (std::string program = programs_.running(); !program.empty()) {
        return Work{"Running " + std::move(program), std::nullopt};
    }
    if (!wanted_recipe().empty()) return Work{"Predicting " + wanted_recipe(), std::nullopt};
    const std::string& recipe = look_ahead_.being_planned();
    if (!recipe.empty()) return Work{"Planning " + recipe, std::nullopt};
    const auto planned = slots_.planned_compare.progress();
    const auto share = planned ? planned : slots_.planner.progress();
    return share ? std::optional(Work{"Planning the recipes", share}) : std::nullopt;
}

/// A and B stay as they are. Plans keep the rows that are known.
void Workspace::cancel_work() {
    programs_.stop();
    look_ahead_.cancel();
    pending_.wait_no_longer();
    slots_.planned_compare.cancel();
    slots_.planner.cancel();
}

/// What the user waits for comes first: a recipe that is tried, the plan of the open ones.
void Workspace::plan_usual_recipes() {
    const auto& planned = slots_.planned_compare;
    if (!look_ahead_.is_idle() || !planned.settled(state())) return;
    auto request = planned.view() ? planned.view()->usual : std::nullopt;
    if (request == usual_request_) return;
    usual_request_ = std::move(request);
    changed_ = true;  // its slot asks in the next frame
}

/// Only while the panel is in sight. Plans more recipes only while nothing else is being predicted:
/// what the user waits for comes first.
void Workspace::plan_frontier() {
    if (!std::exchange(grows_frontier_, false)) return;
    if (plans_nothing(queries_.planner, selection_)) return;
    const bool is_free = look_ahead_.is_idle() && slots_.planner.settled(state()) &&
                         slots_.planned_compare.settled(state());
    frontier_plans_.update(frontier_request(state()), is_free);
}

}  // namespace app
