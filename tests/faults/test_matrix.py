"""The matrix is whole: no answer of the faulty server stands beside it, and no fault stands in it twice."""

import fault_streams
import matrix


def test_every_fault_of_the_server_is_in_the_matrix_once():
    assert len(matrix.ALL) >= 80
    names = [(f.kind, f.name) for f in matrix.ALL]
    assert len(set(names)) == len(names)
    streams = {f.name for f in [*matrix.ODD, *matrix.ENDLESS, *matrix.BOMBS, *matrix.LEGAL]}
    assert streams == set(fault_streams.STREAMS)
    assert {f.name for f in matrix.METRICS} == {*fault_streams.METRICS, "metrics-endless"}
