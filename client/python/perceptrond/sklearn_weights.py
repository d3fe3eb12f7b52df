"""Weights as fitted estimators of scikit-learn. perceptrond.weights has the functions to call."""

from typing import Any

import numpy
import scipy.sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from .weights import LinearClassifier

# coef_ of more stays sparse, as sparsify() makes it.
MOST_DENSE = 1 << 24


def write(linear: LinearClassifier) -> Any:
    if linear.positive_ties:
        raise ValueError("the model predicts the second label for a score of 0 (TIE_RULE_POSITIVE), and scikit-learn the first: labels would differ")
    classifier = LogisticRegression() if linear.learner == "logistic_regression" else Perceptron()
    names, coef = _ordered(linear)
    classifier.classes_ = numpy.array(linear.labels)
    classifier.coef_ = coef.toarray() if coef.shape[0] * coef.shape[1] <= MOST_DENSE else coef
    classifier.intercept_ = numpy.array(linear.bias, numpy.float64)
    classifier.n_features_in_ = coef.shape[1]
    classifier.n_iter_ = numpy.zeros(1, int) if linear.learner == "logistic_regression" else 0
    if linear.space != "named":
        return classifier
    vectorizer = DictVectorizer()
    vectorizer.feature_names_ = names
    vectorizer.vocabulary_ = {name: column for column, name in enumerate(names)}
    return make_pipeline(vectorizer, classifier)


def _ordered(linear: LinearClassifier) -> tuple[list[str], Any]:
    """In the order of the names, as DictVectorizer has them."""
    if linear.space != "named":
        return [], linear.coef
    order = sorted(range(len(linear.names)), key=linear.names.__getitem__)
    return [linear.names[column] for column in order], linear.coef[:, order]


def read(estimator: Any) -> LinearClassifier:
    names: list[str] = []
    space, classifier = "dense", estimator
    if isinstance(estimator, Pipeline) and len(estimator) == 2 and isinstance(estimator[0], DictVectorizer):
        space, classifier, names = "named", estimator[1], [str(name) for name in estimator[0].get_feature_names_out()]
    if not isinstance(classifier, LinearClassifierMixin):
        kind = " with ".join(type(step).__name__ for step in estimator) if isinstance(estimator, Pipeline) else type(estimator).__name__
        raise ValueError(f"expected a linear classifier, such as SGDClassifier, Perceptron, LogisticRegression or LinearSVC, "
                         f"alone or in a pipeline after a DictVectorizer; not {kind}")
    check_is_fitted(classifier, ["coef_", "intercept_", "classes_"])
    coef = scipy.sparse.csr_matrix(classifier.coef_)
    bias = numpy.broadcast_to(numpy.asarray(classifier.intercept_, numpy.float64), (coef.shape[0],)).copy()
    learner = "logistic_regression" if isinstance(classifier, LogisticRegression) else "perceptron"
    labels = [label.item() if hasattr(label, "item") else label for label in classifier.classes_]
    return LinearClassifier(space, names, [label if type(label) is int else str(label) for label in labels], coef, bias, learner=learner)
