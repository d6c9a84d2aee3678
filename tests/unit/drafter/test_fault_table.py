"""The one table of faults: what others name after it must be in it."""

import re

from runners.core import paths
from runners.drafter import faults
from runners.profiles import load, schema

CHECKPOINT = {name for name, fault in faults.FAULTS.items() if fault.origin == "checkpoint"}
TRAINING = {name for name, fault in faults.FAULTS.items() if fault.origin == "training"}


def test_a_profile_may_name_each_fault_of_the_checkpoint_and_no_other():
    assert set(schema.Fault.__args__) == CHECKPOINT


def test_each_fault_of_the_training_is_a_variant_that_lab_cpu_trains():
    assert set(load.load("lab-cpu").training.variants) == TRAINING


def test_whatever_a_diagnosis_names_is_in_the_table():
    what_if = (paths.SCRIPTS / "what_if.py").read_text()
    diagnose = (paths.ROOT / "runners" / "drafter" / "diagnose.py").read_text()
    named = re.findall(r'judge\(f?"[^"]*", "([^"]+)"', what_if) + re.findall(r'fault\("([^"]+)"\)', diagnose)
    assert {"boundary+1", "wrong-map", "weak", "engine"} <= set(named) <= set(faults.FAULTS)
    for fault in faults.FAULTS.values():
        assert set(fault.named_as) <= {*faults.FAULTS, "none"}, fault.name


def test_a_diagnosis_is_right_by_its_own_name_or_by_those_of_the_table():
    assert faults.names_rightly("int4", "int4") and not faults.names_rightly("weak", "int4")
    assert faults.names_rightly("boundary-1", "trained+1") and not faults.names_rightly("trained+1", "trained+1")
    assert faults.names_rightly("none", faults.AS_TRAINED)
    assert faults.names_rightly("gone", "gone")  # of an older version


def test_the_drafter_as_it_was_trained_is_measured_first_and_graded_noise_never():
    assert faults.MEASURED[0] == faults.AS_TRAINED
    assert not {"noise-0.2", "weak", "engine"} & set(faults.MEASURED)
    assert faults.what("from an older version") == "from an older version"
