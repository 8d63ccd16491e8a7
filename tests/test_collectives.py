"""The formulas by hand."""

from dataclasses import replace

import pytest

from reports.collectives import Links, all_reduce_s, ring_s, tree_s

LINKS = Links(
    gpus_per_node=8,
    ring_within_s=1.0,
    tree_within_s=2.0,
    within_bytes_per_s=1000.0,
    ring_between_s=10.0,
    tree_between_s=20.0,
    between_bytes_per_s=100.0,
)


def test_one_gpu_has_nobody_to_reduce_with() -> None:
    assert ring_s(1, 1e6, LINKS) == tree_s(1, 1e6, LINKS) == all_reduce_s(1, 1e6, LINKS) == 0


def test_within_a_node_only_its_own_links_count() -> None:
    assert ring_s(4, 2000, LINKS) == pytest.approx(2 * 3 * 1.0 + 2 * 3 / 4 * 2000 / 1000)
    assert tree_s(4, 2000, LINKS) == pytest.approx(2 * 3 * 2.0 + 2 * 2000 / 1000)


def test_between_nodes_a_ring_hops_twice_for_each_and_a_tree_by_its_depth() -> None:
    gpus, nodes = 40, 5  # of which the binary tree is three deep
    assert ring_s(gpus, 200, LINKS) == pytest.approx(
        (2 * 39 - 2 * nodes) * 1.0 + 2 * nodes * 10.0 + 2 * 39 / 40 * 200 / 100
    )
    assert tree_s(gpus, 200, LINKS) == pytest.approx(2 * 7 * 2.0 + 2 * 3 * 20.0 + 2 * 200 / 100)


def test_nodes_of_one_gpu_have_no_hop_within() -> None:
    alone = replace(LINKS, gpus_per_node=1)
    assert ring_s(2, 0, alone) == pytest.approx(2 * 10.0)
    assert tree_s(2, 0, alone) == pytest.approx(2 * 20.0)


def test_the_narrowest_part_decides() -> None:
    fast = replace(LINKS, between_bytes_per_s=1e9)
    assert ring_s(16, 2000, fast) - ring_s(16, 0, fast) == pytest.approx(2 * 15 / 16 * 2000 / 1000)
    assert ring_s(16, 2000, LINKS) - ring_s(16, 0, LINKS) == pytest.approx(2 * 15 / 16 * 2000 / 100)


def test_the_quicker_algorithm_is_taken() -> None:
    """A ring carries no more than a tree, and takes more hops the more GPUs there are."""
    few_large, many_small = (2, 1e9), (1024, 8.0)
    assert all_reduce_s(*few_large, LINKS) == ring_s(*few_large, LINKS) < tree_s(*few_large, LINKS)
    assert all_reduce_s(*many_small, LINKS) == tree_s(*many_small, LINKS) < ring_s(*many_small, LINKS)
