#pragma once

#include "app/workspace/predictions.h"
#include "app/workspace/selection.h"
#include "profiler/view/layer_view.h"

#include <optional>
#include <string>
#include <vector>

namespace app {

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
        const std::string& gpu;  // its id; of a predicted A its own
    };
    /// What to show as A and B.
    struct Pair {
        DocumentPtr a;
        DocumentPtr b;  // null: A has the wanted recipe
    };

    explicit RecipeTrials(Predictor& predictor) : predictions_(predictor) {}

    void want(std::string recipe) { wanted_ = std::move(recipe); }
    /// The recipe that the user waits for; empty: none.
    const std::string& wanted() const { return wanted_; }

    /// Takes finished predictions. The sentences say what could not be predicted.
    std::vector<std::string> update();
    /// The pair that shows the wanted recipe. B is an open trace or else a prediction; beside a
    /// prediction A is predicted too, so that both are. Each wanted recipe is returned once.
    /// nullopt: none is wanted, or it is still being predicted. Errors: A does not say which step
    /// it ran.
    models::Result<std::optional<Pair>> take_wanted(const Inputs& inputs);

    /// Predicts in idle time, one step after the other, the recipes that are one switch away: the
    /// next switch is then answered at once. `view` lists the switches; null: they are not known
    /// yet.
    void predict_ahead(const Inputs& inputs, const profiler::LayerView* view);
    /// Call it when other recipes are one switch away.
    void forget_ahead() { ahead_.reset(); }

    /// A step that the user waits for is being predicted.
    bool busy() const { return predictions_.busy(); }
    /// Nothing is being predicted, not even ahead.
    bool is_idle() const { return predictions_.is_idle(); }

private:
    Predictions predictions_;
    std::string wanted_;
    /// What is still to be predicted ahead; empty: it is not known yet.
    std::optional<std::vector<StepToPredict>> ahead_;
};

}  // namespace app
