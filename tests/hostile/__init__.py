"""Hostile runs of the command line tool: what tests/hostile.py is made of."""
# SPDX-License-Identifier: BSD-3-Clause
