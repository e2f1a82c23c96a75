#pragma once

#include "app/workspace/predictions.h"
#include "app/workspace/scene.h"
#include "profiler/view/layer_view.h"

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

/// Gets the step of A with another recipe: the one that the user wants to see as B, and, ahead of
/// time, those that the user may want next.
class RecipeTrials {
public:
    struct Inputs {
        const std::vector<DocumentPtr>& documents;
        const Selection& selection;
        const std::string& gpu;          // its id; of a predicted A its own
        const std::string& planned_gpu;  // for which Compare plans
        const DocumentPtr trial;         // that is open
    };

    explicit RecipeTrials(Predictor& predictor) : predictor_(predictor), predictions_(predictor) {}
    ~RecipeTrials() { plans_.cancel(); }

    void want(std::string recipe) { wanted_ = std::move(recipe); }
    /// Waits no longer. What is being predicted is kept for another time.
    void cancel() {
        wanted_.clear();
        predictions_.wait_no_longer();
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

    /// Another number when find_pair may answer otherwise than before.
    size_t num_news() const { return num_news_; }
    /// Whether all that is one switch away was predicted, or cannot be.
    bool knows_ahead() const { return ahead_ && ahead_->empty() && is_idle() && !has_news_; }

    /// The recipe that is planned while it is predicted, and after that; empty: none.
    const std::string& being_planned() const { return being_planned_; }

    /// A step that the user waits for is being predicted.
    bool busy() const { return predictions_.busy(); }
    /// Nothing is being predicted, not even ahead.
    bool is_idle() const { return predictions_.is_idle(); }

private:
    void note_news() {
        has_news_ = true;
        ++num_news_;
    }
    void plan(const Inputs& inputs);

    Predictor& predictor_;
    Predictions predictions_;
    bool has_news_ = true;  // something was predicted, or other recipes are near
    size_t num_news_ = 0;
    std::string wanted_;
    std::string being_planned_;
    /// What is still to be predicted ahead; empty: it is not known yet.
    std::optional<std::vector<StepToPredict>> ahead_;
    JobQueue<bool> plans_{Waiting::kDrop};  // the predictor keeps what they plan
};

}  // namespace app
