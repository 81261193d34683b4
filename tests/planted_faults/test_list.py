"""The faults that tools/planted_faults.py plants can be planted, and the page of the documentation lists them."""

from __future__ import annotations

import ast

import pytest

from tools.planted_faults import PAGE, ROOT, Fault, page, read_faults

FAULTS = read_faults()

KINDS = {
    "wrong fill compare",
    "swapped axis",
    "dropped checksum",
    "stale index",
    "lost inner chunk",
    "off by one at an edge",
    "torn read",
    "bypassed wrapper",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_text_to_replace_is_there_once(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text("utf-8").count(fault.old) == 1
    assert fault.new != fault.old


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_named_tests_exist(fault: Fault) -> None:
    assert fault.tests
    for test in fault.tests:
        file, *_, name = test.split("::")
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        assert name in {function.name for function in functions}


def test_every_kind_of_fault_is_planted_in_the_core_or_an_adapter() -> None:
    assert {fault.kind for fault in FAULTS} >= KINDS
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_the_page_is_the_list() -> None:
    assert PAGE.read_text("utf-8") == page()
