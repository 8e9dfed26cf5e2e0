"""Learn who from how many: instance-level classifiers from bags with only the number of positives.

Names are loaded on first use, so that ``import bagwise`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bagwise import plots as plots
    from bagwise.bags import Bags as Bags
    from bagwise.bags import bag_target as bag_target
    from bagwise.claims.answers import bags_used_in_fit as bags_used_in_fit
    from bagwise.claims.assessment import assess as assess
    from bagwise.claims.certificate import certify as certify
    from bagwise.claims.metrics import bag_error as bag_error
    from bagwise.claims.metrics import instance_error as instance_error
    from bagwise.claims.metrics import oracle_bag_error as oracle_bag_error
    from bagwise.claims.metrics import proportion_error as proportion_error
    from bagwise.data import datasets as datasets
    from bagwise.data.io import read_bags as read_bags
    from bagwise.data.io import write_bags as write_bags
    from bagwise.data.oracles import BagOracle as BagOracle
    from bagwise.estimators.alternating import AlternatingMeanMap as AlternatingMeanMap
    from bagwise.estimators.bag_loss import BagLossRegression as BagLossRegression
    from bagwise.estimators.debiased import EasyLLP as EasyLLP
    from bagwise.estimators.logistic import BagLogisticRegression as BagLogisticRegression
    from bagwise.estimators.mean import MeanLTF as MeanLTF
    from bagwise.estimators.mean import MeanMap as MeanMap
    from bagwise.estimators.meta import BagClassifier as BagClassifier
    from bagwise.estimators.random import ClassRatioLTF as ClassRatioLTF
    from bagwise.estimators.random import RandomLTF as RandomLTF
    from bagwise.estimators.sdp import SDPLTF as SDPLTF
    from bagwise.estimators.spectral import SpectralLTF as SpectralLTF
    from bagwise.ltf import LTF as LTF
    from bagwise.persist import load as load
    from bagwise.persist import save as save
    from bagwise.planner import plan as plan
    from bagwise.releases import CountNoise as CountNoise
    from bagwise.scale.predictions import write_predictions as write_predictions
    from bagwise.scale.streaming import scan_bags as scan_bags
    from bagwise.stats.moments import BagMoments as BagMoments

# Public name -> module that owns it, grouped by concept.
_HOME = {
    "Bags": "bags",
    "bag_target": "bags",
    "CountNoise": "releases",
    "LTF": "ltf",
    "BagOracle": "data.oracles",
    "read_bags": "data.io",
    "write_bags": "data.io",
    "scan_bags": "scale.streaming",
    "write_predictions": "scale.predictions",
    "BagMoments": "stats.moments",
    "BagLogisticRegression": "estimators.logistic",
    "BagClassifier": "estimators.meta",
    "SpectralLTF": "estimators.spectral",
    "SDPLTF": "estimators.sdp",
    "MeanMap": "estimators.mean",
    "BagLossRegression": "estimators.bag_loss",
    "EasyLLP": "estimators.debiased",
    "AlternatingMeanMap": "estimators.alternating",
    "MeanLTF": "estimators.mean",
    "RandomLTF": "estimators.random",
    "ClassRatioLTF": "estimators.random",
    "save": "persist",
    "load": "persist",
    "bag_error": "claims.metrics",
    "proportion_error": "claims.metrics",
    "instance_error": "claims.metrics",
    "oracle_bag_error": "claims.metrics",
    "assess": "claims.assessment",
    "certify": "claims.certificate",
    "bags_used_in_fit": "claims.answers",
    "plan": "planner",
}

# Modules that are used by name, as in bw.datasets.load_digits().
_MODULES = {"datasets": "data.datasets", "plots": "plots"}

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"bagwise.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'bagwise' has no attribute {name!r}")
    value = getattr(import_module(f"bagwise.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
