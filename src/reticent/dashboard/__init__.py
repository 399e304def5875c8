"""The browser page: displays what the library answers, derives nothing. Needs the ``dashboard`` extra.

Fields, attackers and styles come from the lists of mechanisms and attackers.
"""
