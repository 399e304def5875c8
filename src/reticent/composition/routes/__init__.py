"""Ways to enclose a composition; none needs another, and ``enclose`` joins what they find.

``transform`` (on ``contour``): characteristic functions; ``lattice``: losses on a grid; ``bounds``: cheap ones that are
always there; ``advantage``: one number of one sampled step, certified in about a millisecond.
"""
