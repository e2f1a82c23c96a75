#pragma once

#include "app/prediction/predictor.h"
#include "app/prediction/recent.h"
#include "app/workspace/jobs/job_queue.h"
#include "app/workspace/pending_pairs.h"
#include "profiler/view/layers/layer_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace app {

/// Whether both were measured on one device, or predicted for one GPU: only then do they compare.
bool ran_alike(const Document& a, const Document& b);

/// The open step that is A's with this recipe, from A's device: measured as A is, or predicted for
/// the same GPU. Null: none is open.
DocumentPtr document_of_recipe(const std::vector<DocumentPtr>& documents,
                               const Selection& selection, const std::string& recipe);

/// Gets the step of A with other recipes: first with the recipe that the user asked to see as B,
/// then, ahead of time, with recipes that the user may ask for next. They are predicted on a
/// background thread, and the last of them are kept.
class LookAhead {
public:
    struct Inputs {
        const std::vector<DocumentPtr>& documents;
        const Selection& selection;
        const std::string& gpu;          // its id; of a predicted A its own
        const std::string& planned_gpu;  // for which Compare plans
        const DocumentPtr prediction;    // that is open
    };

    explicit LookAhead(Predictor& predictor) : predictor_(predictor) {}
    ~LookAhead() {
        plans_.cancel();
        queue_.cancel();
    }

    void want(std::string recipe) { wanted_ = std::move(recipe); }
    /// Waits no longer. What is being predicted is kept for another time.
    void cancel() {
        wanted_.clear();
        wanted_steps_.clear();
        plans_.cancel();
    }
    /// The recipe that the user waits for; empty: none.
    const std::string& wanted() const { return wanted_; }

    /// Takes finished predictions. The sentences say what could not be predicted.
    std::vector<std::string> update();
    /// The pair that shows the wanted recipe. B is an open trace or else a prediction; beside a
    /// prediction A is predicted too, so that both are. Each wanted recipe is returned once. While
    /// B is predicted, it is planned too.
    /// nullopt: none is wanted, or it is still being predicted. Errors: A does not say which step
    /// it ran.
    models::Result<std::optional<Pair>> take_wanted(const Inputs& inputs);

    /// The pair that would show a recipe, if it is open or was predicted; else nullopt.
    std::optional<Pair> find_pair(const Inputs& inputs, const std::string& recipe) const;

    /// Predicts in idle time, one step after the other, the recipes that are one switch away: the
    /// next switch is then answered at once. `view` lists the switches; null: they are not known
    /// yet.
    void predict_ahead(const Inputs& inputs, const profiler::LayerView* view);
    /// The pairs that are one switch away and known. Empty: they are those of the last call.
    std::optional<std::vector<Pair>> take_known_ahead(const Inputs& inputs,
                                                      const profiler::LayerView& view);
    /// Call it when other recipes are one switch away.
    void forget_ahead() {
        ahead_.reset();
        note_news();
    }

    /// By recipe: what it changes in the peak of the step that the window shows; nullopt: not
    /// known. Cleared when one of them may have changed. The window asks for each button in each
    /// frame, and to find an answer takes 80 µs.
    Recent<std::string, std::optional<int64_t>>& peak_changes() const { return peak_changes_; }

    /// Whether all that is one switch away was predicted, or cannot be.
    bool knows_ahead() const { return ahead_ && ahead_->empty() && is_idle() && !has_news_; }

    /// The recipe that is planned while it is predicted, and after that; empty: none.
    const std::string& being_planned() const { return being_planned_; }

    /// A step that the user waits for is being predicted.
    bool busy() const { return !wanted_steps_.empty(); }
    /// Nothing is being predicted, not even ahead.
    bool is_idle() const { return running_.empty(); }

private:
    struct Predicted {
        profiler::StepToTrace step;
        models::Result<DocumentPtr> document;
    };
    /// Null: it is not known, or was refused.
    DocumentPtr find(const profiler::StepToTrace& step) const;
    bool want_step(const profiler::StepToTrace& step);
    void start(const profiler::StepToTrace& step);
    /// find_pair may answer otherwise than before.
    void note_news() {
        has_news_ = true;
        peak_changes_.clear();
    }
    void plan(const Inputs& inputs);

    Predictor& predictor_;
    std::vector<profiler::StepToTrace> wanted_steps_;  // by the user, not yet known
    std::vector<profiler::StepToTrace> running_;
    JobQueue<Predicted> queue_{Waiting::kKeep};
    bool has_news_ = true;  // something was predicted, or other recipes are near
    std::string wanted_;
    std::string being_planned_;
    /// What is still to be predicted ahead; empty: it is not known yet.
    std::optional<std::vector<profiler::StepToTrace>> ahead_;
    JobQueue<bool> plans_{Waiting::kDrop};  // the predictor keeps what they plan
    /// Predicted steps as the window opens them, or why they cannot be predicted; some megabytes
    /// each.
    Recent<profiler::StepToTrace, models::Result<DocumentPtr>> documents_{48};
    mutable Recent<std::string, std::optional<int64_t>> peak_changes_{256};
};

}  // namespace app
